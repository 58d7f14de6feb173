import { isObject, type JsonObject, type ResponseMessage } from '#wire';
import { NoAnswer, type ClientRequests } from '../../../request/client-requests.ts';
import { eventBytes } from '../../../request/events.ts';
import { notificationText } from '../../../wire/own-messages.ts';
import { missingCapability, toClientRequest, type PendingRequest, type InputRequest } from './input-requests.ts';

export interface Client {
  readonly session: string;
  readonly capabilities: JsonObject;
  /** Whether the client accepts an event stream. */
  readonly events: boolean;
  readonly toClient: (text: string) => string;
}

/**
 * Asks the client one round of a server's questions, as requests on its event stream. Yields the events. Returns the
 * `inputResponses` as JSON text. Throws NoAnswer if the client cannot be asked, or if an answer does not come; then the
 * other questions are cancelled. `round` is unique over all calls, and becomes part of the ids.
 */
export async function* askClient(
  clientRequests: ClientRequests,
  client: Client,
  { requests }: PendingRequest,
  round: string,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, string, undefined> {
  for (const request of requests) refuseUnaskable(client, request);
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  const open = new Set<string>();
  const asked = requests.map((request, index) => ({
    request,
    id: `${round}.${index}`,
    text: toClientRequest(request, `${round}.${index}`),
  }));
  // Waits begin before the questions are sent, because the answers come on other connections.
  const waiting = asked.map(async ({ request, id }) => {
    open.add(id);
    const message = await clientRequests.register(client.session, id, either);
    open.delete(id);
    return `${JSON.stringify(request.key)}:${resultOf(request, message)}`;
  });
  const answers = Promise.all(waiting);
  answers.catch(() => {});
  try {
    for (const { text } of asked) yield eventBytes(client.toClient(text));
    return `{${(await answers).join(',')}}`;
  } catch (error) {
    if (!signal.aborted) for (const requestId of open) yield eventBytes(client.toClient(takenBack(requestId)));
    throw error;
  } finally {
    over.abort();
  }
}

function refuseUnaskable({ capabilities, events }: Client, request: InputRequest): void {
  if (!events)
    throw new NoAnswer(
      `it asks the client (${request.method}), but the client does not accept an event stream. Send "Accept: application/json, text/event-stream"`,
    );
  const missing = missingCapability(request, capabilities);
  if (missing !== null)
    throw new NoAnswer(
      `it asks the client (${request.method}), but the client did not declare the capability ${missing}`,
    );
}

/** The client's result, as JSON text. A modern server accepts only results, so an error of the client ends the call. */
function resultOf({ method }: InputRequest, { text, members, result, error }: ResponseMessage): string {
  if (error) throw new NoAnswer(`the client answered ${method} with the error ${error.code}: ${error.message}`);
  if (!isObject(result)) throw new NoAnswer(`the client answered ${method} with no object`);
  const { start, end } = members.get('result')!;
  return text.slice(start, end);
}

const takenBack = (requestId: string) =>
  notificationText('notifications/cancelled', { requestId, reason: 'The answer is no longer needed' });
