import { isObject, type JsonObject, type ResponseMessage } from '#wire';
import { NoAnswer, type ClientRequests } from '../../../turn/client-requests.ts';
import { eventBytes } from '../../../turn/events.ts';
import { notificationText } from '../../../wire/own-messages.ts';
import { missingCapability, toClientRequest, type Asked, type InputRequest } from './input-requests.ts';

export interface Client {
  readonly session: string;
  readonly capabilities: JsonObject;
  /** Whether it reads an event stream. */
  readonly events: boolean;
  readonly toClient: (text: string) => string;
}

/**
 * Puts one round of a server's questions to the client, as requests on its event stream. Yields the events; returns
 * the `inputResponses`, JSON text. Throws NoAnswer where the client cannot be asked or an answer does not come; the
 * other questions are then taken back. `round` is part of the ids and unique over all calls.
 */
export async function* askClient(
  clientRequests: ClientRequests,
  client: Client,
  { requests }: Asked,
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
  // The wait begins before a question is out: the answer comes by another connection.
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
      `it asks the client (${request.method}), which takes no event stream: send "Accept: application/json, text/event-stream"`,
    );
  const missing = missingCapability(request, capabilities);
  if (missing !== null)
    throw new NoAnswer(`it asks the client (${request.method}), which did not declare the capability ${missing}`);
}

/** The client's result, JSON text. A modern server takes results alone: a client's error is the end. */
function resultOf({ method }: InputRequest, { text, members, result, error }: ResponseMessage): string {
  if (error) throw new NoAnswer(`the client answered ${method} with the error ${error.code}: ${error.message}`);
  if (!isObject(result)) throw new NoAnswer(`the client answered ${method} with no object`);
  const { start, end } = members.get('result')!;
  return text.slice(start, end);
}

const takenBack = (requestId: string) =>
  notificationText('notifications/cancelled', { requestId, reason: 'The answer is not needed any more' });
