import { expect } from 'vitest';
import type { Agent, AgentOptions } from '../../support/a2a-agent/index.ts';
import { ERRORS, type ErrorName } from './error-codes.ts';
import type { Json } from './shapes.ts';
import type { Reply, ProviderStream } from './client-calls.ts';
import type { Webhook } from './webhook.ts';

/** What a check works with. */
export interface Bench {
  readonly talk: ProviderStream;
  /** The agent at the other end, for what the protocol cannot tell it. */
  readonly agent: Agent;
  /** The same with an agent of another kind. One of each kind is kept for the whole suite. */
  other(options: AgentOptions): Promise<Bench>;
  /** Somebody who is told of a task; it ends with the suite. */
  webhook(): Promise<Webhook>;
  /** Somebody else with an account, where there are accounts. */
  readonly stranger?: ProviderStream;
}

export type Check = (bench: Bench) => Promise<void>;

/** Checks by the id of their requirement. */
export type Checks = Readonly<Record<string, Check>>;

/** JSON-RPC says it with HTTP 200 and a code, REST with a status and an ErrorInfo (§5.4). */
export function expectError(reply: Reply, name: ErrorName, { talk }: Bench): void {
  const { code, status } = ERRORS[name];
  expect({ status: reply.status, code: reply.error?.code, text: reply.text }).toEqual({
    status: talk.binding === 'JSONRPC' ? 200 : status,
    code,
    text: reply.text,
  });
}

/** Some error, of whatever kind, and no result. */
export function expectRefused(reply: Reply): void {
  expect(reply.error, reply.text).not.toBeNull();
  expect((reply.json as Json)['result'], reply.text).toBeUndefined();
}

/** Whether the card says that this can be done. A gateway may do what its agent cannot; then its card says so. */
export async function declares({ talk }: Bench, capability: 'streaming' | 'pushNotifications'): Promise<boolean> {
  const { json } = await talk.raw('GET', '/.well-known/agent-card.json', null);
  return ((json as Json)['capabilities'] as Json)[capability] === true;
}

/** Asks for a stream that must not come, and gives the answer that came in its place. */
export async function refusedStream(
  bench: Bench,
  operation: 'SendStreamingMessage' | 'SubscribeToTask',
  params: Json,
): Promise<Reply> {
  const reply = await bench.talk.open(operation, params);
  if (!('next' in reply)) return reply;
  // 0.3 tells of it in an event.
  const refusal = bench.talk.version === '0.3' && bench.talk.binding === 'JSONRPC' ? await reply.refusal() : null;
  if (refusal !== null) return refusal;
  const events = await reply.rest().catch((error: unknown) => [String(error)]);
  throw new Error(`a stream came in place of an error: ${JSON.stringify(events)}`);
}

/** Sends `wait` without waiting for its end, and gives the id of the task that works now. */
export async function workingTask(bench: Bench): Promise<string> {
  const task = await bench.talk.task('wait', { immediately: true });
  return task.id;
}

/**
 * Every member name of a JSON value and of what is in it, save below `metadata`, `data`, `params` and `schemes`,
 * whose names are free.
 */
export function memberNames(value: unknown, names = new Set<string>()): Set<string> {
  if (Array.isArray(value)) for (const one of value) memberNames(one, names);
  else if (typeof value === 'object' && value !== null) {
    for (const [name, inner] of Object.entries(value)) {
      names.add(name);
      if (!['metadata', 'data', 'params', 'schemes', 'securitySchemes', 'scopes'].includes(name))
        memberNames(inner, names);
    }
  }
  return names;
}
