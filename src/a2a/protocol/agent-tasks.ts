import { randomUUID } from 'node:crypto';
import { ONE_CALL } from '#call';
import type { JsonObject } from '#wire';
import type { Caller } from '#accounts';
import { pinned, type Catalog } from '#catalog';
import { type Observation, type Task, type TaskKey, ownerOf, type Tasks } from '#tasks';
import { GatewayError } from '#errors';
import { isOwed, usageOf, type PricedByUse } from './ending.ts';
import { type A2aEvent, isTerminal, stateName, type TaskState } from '../wire/events.ts';
import type { A2aVersion } from '../wire/protocol.ts';

/*
 * The stored tasks of agents: their keys, their notes, what an event changes in them, and which client may continue a
 * context or a task.
 */

/** Notes of a task that exists at no agent, because it is the answer of another primitive. */
export const BRIDGED = '{"bridged":true}';

/**
 * Notes of a task that began in this version, with this call. The task is requested only in this version, because an
 * agent that speaks both versions may store the tasks of each separately.
 */
export const notesOf = (version: A2aVersion, call: string): string => JSON.stringify({ version, call });

/** The version in which a task began; null if its notes do not say. */
export function versionIn(notes: string): A2aVersion | null {
  const { version } = JSON.parse(notes) as { readonly version?: unknown };
  return version === '0.3' || version === '1.0' ? version : null;
}

/** The call with which a task began; null if its notes do not say. */
export function beganBy({ notes, taskId }: Pick<Task, 'notes' | 'taskId'>): string | null {
  // A bridged task has the id of its call.
  if (notes === BRIDGED) return taskId;
  const { call } = JSON.parse(notes) as { readonly call?: unknown };
  return typeof call === 'string' ? call : null;
}

export const keyOf = (service: string, taskId: string): TaskKey => ({ primitive: 'agent', service, taskId });

/**
 * The change that an event brings to its task; null if the event changes nothing. `gave`: the task is known to have
 * given output. `bytes`: the output received from the task, if the event is its end.
 */
export function observationOf(offer: PricedByUse, event: A2aEvent, gave: boolean, bytes: number): Observation | null {
  const { contextId, usage } = event;
  const state = event.state === 'unknown' ? null : event.state;
  const output = isOwed(offer, event);
  if (state === null && (gave || !output)) return null;
  const end = endOf(state);
  return {
    state,
    end,
    output,
    bytes,
    ...(contextId === null ? {} : { contextId }),
    // An agent reports the usage of a task once. It is charged with the first message.
    usageOf: (_call, first, work) => (first ? usageOf(offer, usage, end === 'cut', work) : ONE_CALL),
  };
}

/**
 * How the end of a task is charged. A canceled task is cut, because the client canceled it. A failed or rejected task
 * is free, because its agent failed.
 */
function endOf(state: TaskState | null): Observation['end'] {
  if (!isTerminal(state)) return null;
  return state === 'completed' ? 'complete' : state === 'canceled' ? 'cut' : 'free';
}

/** The status of a task that the gateway has ended, in the form of 1.0. `why`: what its client reads. */
export function canceledStatus({ taskId, contextId }: Pick<Task, 'taskId' | 'contextId'>, why: string): JsonObject {
  const context = contextId === null ? {} : { contextId };
  return {
    state: stateName('canceled'),
    timestamp: new Date().toISOString(),
    message: { messageId: randomUUID(), taskId, ...context, role: 'ROLE_AGENT', parts: [{ text: why }] },
  };
}

/**
 * The caller's last task in the context that a message names; null without one. A context belongs to its first user: an
 * agent sees all clients of the gateway as one, so it would tell one client what another said. Throws GatewayError
 * `invalid_request` for the context of another user.
 */
export async function lastInContext(
  tasks: Pick<Tasks, 'lastIn'>,
  caller: Caller,
  service: string,
  contextId: string | null,
): Promise<Task | null> {
  if (contextId === null) return null;
  const last = await tasks.lastIn(ownerOf(caller), { primitive: 'agent', service, contextId });
  if (last === 'foreign') throw foreign();
  return last;
}

/**
 * Claims a context for the caller before a provider gets the message. Throws GatewayError `invalid_request` if the
 * context belongs to another user.
 */
export async function claimContext(
  tasks: Pick<Tasks, 'claim'>,
  caller: Caller,
  service: string,
  contextId: string | null,
): Promise<void> {
  if (contextId === null) return;
  if (!(await tasks.claim(ownerOf(caller), { primitive: 'agent', service, contextId }))) throw foreign();
}

/**
 * Claims a context that the agent made, so that no other user enters it, also when its tasks are removed. If it belongs
 * to another one, it stays theirs. A claim lives for a year after its last use.
 */
export async function claimAnswered(
  tasks: Pick<Tasks, 'claim'>,
  caller: Caller,
  service: string,
  contextId: string | null,
): Promise<void> {
  if (contextId !== null) await tasks.claim(ownerOf(caller), { primitive: 'agent', service, contextId });
}

const foreign = () =>
  new GatewayError('invalid_request', 'This context does not exist. To begin a new one, omit the contextId', {
    param: 'message.contextId',
  });

/**
 * Whether a message costs nothing because an earlier one has paid for it. That is so if its task is live, and the first
 * message paid for the whole task, or a call has no price. `task`: the task that the message continues; null for none.
 */
export function isCovered(catalog: Pick<Catalog, 'resolve'>, task: Pick<Task, 'offerId' | 'live'> | null): boolean {
  if (task === null) return false;
  const offer = catalog.resolve(pinned(task.offerId), 'agent').offers[0]!;
  return task.live && (offer.agent?.chargedPer === 'task' || (offer.price.rates.call ?? 0n) === 0n);
}
