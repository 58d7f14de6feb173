/** What a run cost: the tree of its calls, each with its signed receipt. */
import { compactVerify, createLocalJWKSet, type JSONWebKeySet } from 'jose';
import type { Gateway } from './client.ts';

/** Of `GET /api/v1/generation?id=`, as much as is shown here. */
export interface Generation {
  readonly id: string;
  readonly primitive: string;
  readonly model: string;
  readonly tool: string | null;
  readonly parent: string | null;
  readonly state: string;
  /** Units of each meter. */
  readonly usage_details: Readonly<Record<string, number>>;
  readonly cost_micro_usdc: number;
  readonly receipt: string | null;
  readonly entries: readonly { readonly type: string; readonly amount_micro_usdc: number }[];
  readonly children: readonly Generation[];
}

export async function get<T>({ url, key }: Gateway, path: string): Promise<T> {
  const response = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${key}` } });
  if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
  return (await response.json()) as T;
}

/**
 * Throws where a receipt is not signed by the gateway's key, or says something else than the call that it is of.
 * Needs no network once it has the keys.
 */
export async function verify(call: Generation, keys: JSONWebKeySet): Promise<void> {
  if (call.receipt === null) throw new Error(`${call.id} has no receipt`);
  const { payload } = await compactVerify(call.receipt, createLocalJWKSet(keys), { algorithms: ['EdDSA'] });
  const said = JSON.parse(new TextDecoder().decode(payload)) as Readonly<Record<string, unknown>>;
  const same =
    said['id'] === call.id &&
    said['charged'] === String(call.cost_micro_usdc) &&
    (said['parent'] ?? null) === call.parent;
  if (!same) throw new Error(`The receipt of ${call.id} says something else than its record`);
  for (const child of call.children) await verify(child, keys);
}

/** Micro-USD of a call and of all below it. */
export const sumOf = (call: Generation): number =>
  call.children.reduce((sum, child) => sum + sumOf(child), call.cost_micro_usdc);

export const usd = (microUsd: number): string => (microUsd / 1e6).toFixed(6);

export type Paint = (style: 'dim' | 'bold' | 'green' | 'cyan', text: string) => string;

/** One line a call. */
export function draw(call: Generation, paint: Paint, stem = '', branch = ''): string[] {
  const what = `${call.model}${call.tool === null ? '' : ` ${call.tool}`}`;
  const used = Object.entries(call.usage_details)
    .map(([meter, units]) => `${units} ${meter}`)
    .join(', ');
  const plain = `${stem}${branch}${call.primitive} ${what}`;
  const name = `${paint('dim', stem + branch)}${call.primitive} ${paint('cyan', what)}`;
  const line = `${name}${' '.repeat(Math.max(1, 44 - plain.length))}${usd(call.cost_micro_usdc)}  ${paint('dim', used.padEnd(26))} ${paint('green', '✓ signed')}  ${paint('dim', call.id)}`;
  const below = stem + (branch === '' ? '' : branch === '└─ ' ? '   ' : '│  ');
  return [
    line,
    ...call.children.flatMap((child, index) =>
      draw(child, paint, below, index === call.children.length - 1 ? '└─ ' : '├─ '),
    ),
  ];
}
