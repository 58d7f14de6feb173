import { listen } from '../../support/a2a-agent/listening.ts';
import { createReceived, receive } from '../../support/a2a-agent/received.ts';
import type { ReceivedRequest } from '../../support/a2a-agent/index.ts';
import { readEvent, type Event, type Version } from './shapes.ts';

/** A client's webhook, on a loopback port. */
export interface Webhook {
  readonly url: string;
  readonly received: readonly ReceivedRequest[];
  receives(fits: (request: ReceivedRequest) => boolean): Promise<ReceivedRequest>;
  close(): Promise<void>;
}

export async function startWebhook(): Promise<Webhook> {
  const received = createReceived();
  const server = await listen((incoming, response) => {
    void receive(incoming).then((request) => {
      received.add(request);
      response.writeHead(204).end();
    });
  });
  return {
    url: `${server.url}/told`,
    received: received.requests,
    receives: (fits) => received.first(fits),
    close: () => server.close(),
  };
}

/** What a notification says (§4.3.3): a stream's event in 1.0, the bare object in 0.3. */
export const toldEvent = (request: ReceivedRequest, version: Version): Event =>
  readEvent(JSON.parse(request.body), version);

/** Whether it tells of this task in this state. */
export function tells(request: ReceivedRequest, version: Version, taskId: string, state: string): boolean {
  const event = toldEvent(request, version);
  if (event.type === 'task') return event.id === taskId && event.state === state;
  return event.type === 'status' && event.taskId === taskId && event.state === state;
}
