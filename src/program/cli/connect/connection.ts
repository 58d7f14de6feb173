import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { printable } from '#security';
import { CliError } from '../terminal.ts';
import { findGateway, readDevFile, readAddress, isOnThisMachine } from '../discovery.ts';
import { OWN_NAME, START } from '../command-line.ts';
import type { Environment } from '#config';

export interface ConnectionFlags {
  readonly url?: string;
  readonly key?: string;
  readonly model?: string;
  readonly data?: string;
}

/** A model that answers in text. */
interface TextModel {
  readonly name: string;
  /** null if no provider declares it. */
  readonly contextLength: number | null;
  /** The most tokens of one answer; null if only the context limits it. */
  readonly maxOutput: number | null;
}

/** A gateway that answered and accepted the key. */
export interface GatewayConnection {
  /** The address of the gateway, without a slash at its end. */
  readonly base: string;
  readonly key: string;
  /** In USD, as the gateway writes it; null without a key. */
  readonly balance: string | null;
  /** The model that a client calls: a name of `models`, or an agent or tool as `a2a/…` or `mcp/…`. */
  readonly model: string;
  readonly models: readonly TextModel[];
}

interface ConnectionOptions {
  readonly env: Environment;
  /** The client pays by wallet, so no key is needed. */
  readonly keyless: boolean;
  readonly checkout: string;
  readonly cwd: string;
  /** The kind of service that is chosen by default, if the gateway has one. Default `models`. */
  readonly calls?: 'agents' | 'models';
}

const DEFAULT_BASE = 'http://127.0.0.1:8402';
const ANSWER_MS = 10_000;
const KEY_VARIABLE = 'TOLLGATE_API_KEY';

/**
 * Finds a gateway by the flags, else by the environment, else the one that runs on the data directory, and asks it.
 * Rejects with CliError if the address does not answer, is not a tollgate, or refuses the key or the model.
 */
export async function findConnection(
  { url, key: keyFlag, model, data }: ConnectionFlags,
  { env, keyless, checkout, cwd, calls = 'models' }: ConnectionOptions,
): Promise<GatewayConnection> {
  const dataDir = data ?? (env['TOLLGATE_DATA'] || usualData(cwd, checkout));
  const development = readDevFile(dataDir);
  const address = url ?? env['TOLLGATE_URL'];
  const local = address ? undefined : (findGateway(dataDir).gateway?.base_url ?? development?.base_url);
  const base = address
    ? readBase(address, url === undefined ? 'TOLLGATE_URL' : '--url')
    : local === undefined
      ? DEFAULT_BASE
      : requireLocal(local, dataDir);
  // The key of one gateway is not sent to another. A discovery file may have come with the folder of a project, so it
  // must not decide who gets the key of the environment.
  const saved = development?.base_url === base ? development.api_key : undefined;
  const ofEnvironment = local === undefined ? env[KEY_VARIABLE] : undefined;
  const key = keyFlag ?? (ofEnvironment || saved);
  await refuseOthers(base);
  const models = readModels(await ask(base, '/models', null));
  const agent = calls === 'agents' && model === undefined ? await firstAgent(base) : undefined;
  const chosen = agent ?? (await chosenModel({ base, models }, model));
  if (keyless) return { base, key: '', balance: null, models, model: chosen };
  if (!key) throw new CliError(local !== undefined && env[KEY_VARIABLE] ? keyOfAnother(base, dataDir) : noKey(base));
  const { balance_usd: balance } = (await ask(base, '/session/balance', key)) as { readonly balance_usd: unknown };
  return { base, key, balance: printable(String(balance)), models, model: chosen };
}

/**
 * The data directory to look in. Settings of a project are written in its folder, but `npm start` keeps its data in the
 * checkout.
 */
function usualData(cwd: string, checkout: string): string {
  const usual = '.tollgate';
  const own = join(cwd, usual);
  return existsSync(own) ? own : join(checkout, usual);
}

/** Reads an address as people copy it, with or without the path that clients append. */
function readBase(text: string, source: string): string {
  const { origin, pathname } = readAddress(text, source, `API key goes in --key or ${KEY_VARIABLE}`);
  const path = pathname.replace(/\/+$/, '').replace(/\/(?:api(?:\/v1)?|v1|mcp|a2a)$/, '');
  return `${origin}${path}`;
}

/** The address in a file of the data directory. Throws CliError if it is not on this machine. */
function requireLocal(base: string, dataDir: string): string {
  if (isOnThisMachine(base)) return base;
  throw new CliError(
    `The files in ${dataDir} name a gateway on another machine: ${printable(base)}\nIf you mean that one, name it yourself: --url <address>, with its key in --key or ${KEY_VARIABLE}`,
  );
}

/** Throws CliError if the answer at this address is not that of a tollgate. */
async function refuseOthers(base: string): Promise<void> {
  const response = await get(`${base}/api/v1/models/count`, null);
  const body = await jsonOf(response);
  if (response.ok && typeof (body as { data?: { count?: unknown } } | null)?.data?.count === 'number') return;
  throw new CliError(
    `${base} answered with status ${response.status}, but not as tollgate does.\nCheck the address: ${base}/docs has the reference of a gateway.`,
  );
}

async function ask(base: string, path: string, key: string | null): Promise<unknown> {
  const response = await get(`${base}/api/v1${path}`, key);
  const body = (await jsonOf(response)) as { readonly error?: { readonly message?: string } } | null;
  if (response.status === 401) throw new CliError(badKey(base));
  if (response.ok) return body;
  throw new CliError(
    `${base} refused GET /api/v1${path}: ${printable(body?.error?.message ?? `status ${response.status}`, 500)}`,
  );
}

async function get(url: string, key: string | null): Promise<Response> {
  try {
    return await fetch(url, {
      headers: key === null ? {} : { authorization: `Bearer ${key}` },
      redirect: 'error',
      signal: AbortSignal.timeout(ANSWER_MS),
    });
  } catch (error) {
    throw new CliError(
      `The gateway at ${new URL(url).origin} does not answer.\nStart it (${START}), or name another one: --url https://gateway.example`,
      { cause: error },
    );
  }
}

async function jsonOf(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch {
    return null;
  }
}

const noKey = (base: string) =>
  `No API key for ${base} is known.\nSet ${KEY_VARIABLE}, or give --key. The operator of a gateway makes keys: ${OWN_NAME} key create <account>`;
const keyOfAnother = (base: string, dataDir: string) =>
  `The gateway at ${base} was found in ${dataDir}, so ${KEY_VARIABLE} is not shown to it.\nIf the key is for that gateway, name it: --url ${base}`;
const badKey = (base: string) =>
  `The gateway at ${base} refuses this API key.\nCheck ${KEY_VARIABLE} or --key. The key of a development gateway is good for that gateway alone.`;

interface ListedModel {
  readonly id: string;
  readonly context_length: number | null;
  readonly architecture?: { readonly output_modalities?: readonly string[] };
  readonly top_provider?: { readonly max_completion_tokens?: number | null };
}

/** Names are written into files, programs and the terminal. Names that no tollgate would give are left out. */
const PLAIN_NAME = /^[A-Za-z0-9._/:-]{1,256}$/;

const readModels = (body: unknown): readonly TextModel[] =>
  listOf<ListedModel>(body)
    .filter((model) => model.architecture?.output_modalities?.includes('text'))
    .map(({ id, context_length, top_provider }) => ({
      name: id,
      contextLength: context_length,
      maxOutput: top_provider?.max_completion_tokens ?? null,
    }));

/** The entries of a list that have a valid name. */
function listOf<T extends { readonly id: string }>(body: unknown): readonly T[] {
  const data = (body as { readonly data?: unknown } | null)?.data;
  if (!Array.isArray(data)) return [];
  return (data as (T | null)[]).filter((one): one is T => typeof one?.id === 'string' && PLAIN_NAME.test(one.id));
}

/** An agent as a model, in the order of the gateway's list; undefined if it has none. */
async function firstAgent(base: string): Promise<string | undefined> {
  const [first] = listOf(await ask(base, '/agents', null));
  return first === undefined ? undefined : `a2a/${first.id}`;
}

/**
 * The wanted model, checked. By default the model with the largest context; if several have it, the last one in the
 * list.
 */
async function chosenModel(
  { base, models }: Pick<GatewayConnection, 'base' | 'models'>,
  model: string | undefined,
): Promise<string> {
  if (model === undefined) {
    const largest = models.reduce<TextModel | undefined>(
      (best, one) => (best && (best.contextLength ?? 0) >= (one.contextLength ?? 0) ? best : one),
      undefined,
    );
    if (!largest)
      throw new CliError(`The gateway at ${base} offers no model that answers in text.\nName one: --model <name>`);
    return largest.name;
  }
  const [, kind, service] = /^(a2a|mcp)\/(.+)$/.exec(model) ?? [];
  if (kind === 'mcp') return model;
  const names =
    kind === undefined ? models.map(({ name }) => name) : listOf(await ask(base, '/agents', null)).map(({ id }) => id);
  const plain = (service ?? model)
    .replace(/^[1-9A-HJ-NP-Za-km-z]{32,}:|^0x[\da-f]{40}:/i, '')
    .replace(/:(?:floor|nitro)$/, '');
  if (names.includes(plain)) return model;
  // Loaded here, because a correct name does not need it.
  const { nearestHint } = await import('#catalog');
  const hint = nearestHint(plain, names);
  throw new CliError(
    `The gateway at ${base} offers no ${kind === undefined ? 'model' : 'agent'} ${plain}.\n${hint || `It offers ${names.slice(0, 8).join(', ') || 'none'}.`}`,
  );
}
