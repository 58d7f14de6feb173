import { isObject, toHttpError } from '#wire';
import { toGatewayError } from '#gateway';
import { errorOf } from '../response-object.ts';
import type { Json } from '../responses-schema.ts';
import type { EndEvent } from './background-sink.ts';

/** Why a response is ended before its model has finished. */
export type Stopped = 'cancelled' | 'deleted' | 'shutdown';

interface EndFacts {
  /** Its last event; null if it came to none. */
  readonly last: EndEvent | null;
  /** The response as it was before. */
  readonly latest: Json;
  /** null if the gateway did not end it. */
  readonly stopped: Stopped | null;
  /** Why it failed; null if it did not. */
  readonly failure: { readonly error: unknown } | null;
}

/** The last event of a response that was made in the background. */
export function endOf({ last, latest, stopped, failure }: EndFacts): EndEvent {
  if (stopped === 'cancelled') {
    // No event of the API says that a response is cancelled. Every client knows this one as an end.
    const response = withReason(last?.response ?? latest, CUT_BY.cancelled);
    const told = { ...response, status: 'cancelled', error: null, incomplete_details: null };
    return { type: 'response.incomplete', response: told };
  }
  if (last !== null) return stopped === null ? last : { ...last, response: withReason(last.response, CUT_BY[stopped]) };
  if (stopped !== null || failure === null) return failed(latest, serverError(GATEWAY_STOPPED));
  const { error } = toHttpError(toGatewayError(failure.error)).body;
  return failed(latest, errorOf(error));
}

/** The end of a response that is larger than what an account may keep. `first`: as it was before it began. */
export function tooLargeEnd(first: Json, { response: { usage } }: EndEvent, idOfCall: string): EndEvent {
  const message = `The response is larger than what this gateway keeps for an account (responses.account_bytes_max), so it cannot be shown. It was made: generation ${idOfCall} says what was charged`;
  return failed({ ...first, usage }, serverError(message));
}

/** The end of a response whose gateway is gone. */
export const lostEnd = (response: Json, idOfCall: string): EndEvent =>
  failed(
    response,
    serverError(
      `The gateway that made this response is gone. Nothing is charged, unless generation ${idOfCall} says so. Send the request again`,
    ),
  );

const CUT_BY: Readonly<Record<Stopped, string>> = {
  cancelled: 'it was cancelled',
  deleted: 'it was deleted',
  shutdown: 'the gateway stopped',
};
const GATEWAY_STOPPED = 'The gateway stopped before the model had answered. Nothing is charged: send the request again';

const serverError = (message: string) => ({ code: 'server_error', message });

const failed = (response: Json, error: object): EndEvent => ({
  type: 'response.failed',
  response: { ...response, status: 'failed', error },
});

/** The response with this reason in its note. The pipeline says that the client has left. */
function withReason(response: Json, reason: string): Json {
  const { tollgate } = response;
  if (!isObject(tollgate) || !isObject(tollgate['note'])) return response;
  const message = `The reply was cut: ${reason}. The part that arrived is charged`;
  return { ...response, tollgate: { ...tollgate, note: { ...tollgate['note'], message } } };
}
