import type { KeptResponse, KeptResponses } from '#tasks';
import { eventText } from '../../native/native-speech.ts';
import { callIdOf } from '../kept/kept-ids.ts';
import type { Json } from '../responses-schema.ts';
import { lostEnd } from './background-end.ts';
import type { EndEvent } from './background-sink.ts';

/** Ends a response whose gateway is gone. `isSure`: nobody has to look whether it is. */
export async function endLost(
  { read, running }: Pick<KeptResponses, 'read' | 'running'>,
  response: KeptResponse,
  isSure = false,
): Promise<void> {
  const { id, account, within, run } = response;
  if (run === 'deleting') return running.remove(response);
  const [content, last] = await Promise.all([read([response]), running.lastEvent(id)]);
  const found = content.get(id);
  // Its content cannot be read if the gateway had another identity.
  const known = found === undefined ? { id, object: 'response', output: [] } : (JSON.parse(found.response) as Json);
  const lost = lostEnd(known, callIdOf(id));
  const end: EndEvent =
    found?.run === 'cancelling' ? { type: 'response.incomplete', response: { ...known, status: 'cancelled' } } : lost;
  const event = { type: end.type, sequence_number: (last ?? 0) + 1, response: end.response };
  const text = eventText(end.type, JSON.stringify(event));
  const events = last === null ? [] : [{ first: last + 1, last: last + 1, text }];
  await running.lose({ id, account, within, response: JSON.stringify(end.response), items: [], events }, isSure);
}
