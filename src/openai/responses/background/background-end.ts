import { GatewayError } from '#errors';
import type { GiveBack } from '#billing/amounts';
import { isObject, type JsonObject } from '#wire';
import { toHttpError, toGatewayError } from '#http';
import type { KeptResponse, KeptResponses } from '#kept-responses';
import { errorOf } from '../errors.ts';
import type { EndEvent } from './background-sink.ts';
import { eventText } from '../../native/passthrough.ts';
import { callIdOf } from '../kept/kept-ids.ts';

export type Stopped = 'cancelled' | 'deleted' | 'shutdown';

interface EndFacts {
  /** Its last event; null if it came to none. */
  readonly last: EndEvent | null;
  /** The response as it was before. */
  readonly latest: JsonObject;
  /** null if the gateway did not end it. */
  readonly stopped: Stopped | null;
  /** Why it failed; null if it did not. */
  readonly failure: { readonly error: unknown } | null;
}

export function endOf({ last, latest, stopped, failure }: EndFacts): EndEvent {
  if (stopped === 'cancelled' || stopped === 'deleted') return cancelled(settledNote(last?.response ?? latest));
  if (last !== null) return stopped === null ? last : { ...last, response: withReason(last.response, CUT_BY[stopped]) };
  if (stopped !== null || failure === null) return failed(latest, serverError(GATEWAY_STOPPED));
  const { error } = toHttpError(toGatewayError(failure.error)).body;
  return failed(latest, errorOf(error));
}

/** A cancelled response until its call is settled. `output`: what had come before. */
export const cancelledEnd = (response: JsonObject, output: readonly JsonObject[]): EndEvent =>
  cancelled(noted({ ...response, output, usage: null }, UNSETTLED));

/** The end of a stream whose response was deleted. `first`: as it was before it began. */
export const deletedEnd = (first: JsonObject): EndEvent => cancelled(noted(first, DELETED));

/** The end of a response that is larger than what an account may keep. `first`: as it was before it began. */
export function tooLargeEnd(first: JsonObject, { response: { usage, status } }: EndEvent, idOfCall: string): EndEvent {
  const message = `The response is larger than what this gateway keeps for an account (responses.account_bytes_max), so it cannot be shown. It was made: generation ${idOfCall} says what was charged`;
  if (status === 'cancelled') return cancelled(noted({ ...first, usage }, message));
  return failed({ ...first, usage }, serverError(message));
}

function lostEnd(response: JsonObject, isCancelled: boolean, isGivenBack: boolean, idOfCall: string): EndEvent {
  const charge = isGivenBack ? 'What it was charged is given back' : 'Nothing is charged';
  const message = `The gateway that made this response is gone. ${charge}, see generation ${idOfCall}`;
  return isCancelled
    ? cancelled(noted(response, message))
    : failed(response, serverError(`${message}. Send the request again`));
}

const CUT_BY: Readonly<Record<Stopped, string>> = {
  cancelled: 'it was cancelled',
  deleted: 'it was deleted',
  shutdown: 'the gateway stopped',
};
const UNSETTLED =
  'The response was cancelled. Its call is not settled yet: usage shows the cost as soon as it is. What its provider made until its request was ended is charged';
const CANCELLED_WHOLE =
  'The response was cancelled, but its provider ended it before its request was ended, so all of it is charged';
const DELETED = 'The response was deleted. What its provider made is charged';
const GATEWAY_STOPPED = 'The gateway stopped before the model had answered. Nothing is charged: send the request again';

const serverError = (message: string) => ({ code: 'server_error', message });

const failed = (response: JsonObject, error: object): EndEvent => ({
  type: 'response.failed',
  response: { ...response, status: 'failed', error },
});

/** No event of the API says that a response is cancelled. Every client knows this one as an end. */
const cancelled = (response: JsonObject): EndEvent => ({
  type: 'response.incomplete',
  response: { ...response, status: 'cancelled', completed_at: null, error: null, incomplete_details: null },
});

/** A cancelled response whose call is settled, with a note that says why it costs what it costs. */
function settledNote(response: JsonObject): JsonObject {
  const { tollgate, usage } = response;
  if (isObject(tollgate) && isObject(tollgate['note'])) return withReason(response, CUT_BY.cancelled);
  return isObject(usage) && usage['cost'] !== 0 ? noted(response, CANCELLED_WHOLE) : response;
}

function noted(response: JsonObject, message: string): JsonObject {
  const note = toHttpError(new GatewayError('reply_cut', message)).body.error;
  return { ...response, tollgate: { ...(response['tollgate'] as object | undefined), note } };
}

/** The response with this reason in its note. The pipeline says that the client has left. */
function withReason(response: JsonObject, reason: string): JsonObject {
  const { tollgate } = response;
  if (!isObject(tollgate) || !isObject(tollgate['note'])) return response;
  const message = `The reply was cut: ${reason}. The part that arrived is charged`;
  return { ...response, tollgate: { ...tollgate, note: { ...tollgate['note'], message } } };
}

interface LostDeps {
  readonly keptResponses: Pick<KeptResponses, 'read' | 'running'>;
  readonly giveBack: GiveBack;
}

/**
 * Ends a response whose gateway is gone. What its call was charged is given back, because the answer is lost. `isSure`:
 * nobody has to look whether the gateway is gone. Resolves with false if the call may still be charged: then the
 * response is found again later.
 */
export async function endLost(
  { keptResponses: { read, running }, giveBack }: LostDeps,
  response: KeptResponse,
  isSure = false,
): Promise<boolean> {
  const { id, account, within, run } = response;
  // Nobody wants its answer any more.
  if (run === 'deleting') return running.remove(response).then(() => true);
  const { amount, openUntil } = await giveBack(callIdOf(id));
  const isOver = openUntil === null;
  if (run === 'answering') {
    await (isOver ? running.remove(response) : running.postpone(id, openUntil));
    return isOver;
  }
  const [content, last] = await Promise.all([read([response]), running.lastEvent(id)]);
  const storedContent = content.get(id);
  // Its content cannot be read if the gateway had another identity.
  const known =
    storedContent === undefined
      ? { id, object: 'response', output: [] }
      : (JSON.parse(storedContent.response) as JsonObject);
  const isCancelled = storedContent?.run === 'cancelling' || known['status'] === 'cancelled';
  const end = lostEnd(known, isCancelled, amount > 0n, callIdOf(id));
  const event = { type: end.type, sequence_number: (last ?? 0) + 1, response: end.response };
  const text = eventText(end.type, JSON.stringify(event));
  const events = last === null ? [] : [{ first: last + 1, last: last + 1, text }];
  const lost = { id, account, within, response: JSON.stringify(end.response), items: [], events };
  await running.lose(lost, openUntil, isSure);
  return isOver;
}
