import { GatewayError, type ReplySink } from '#wire';
import { type OpenedCall, wasCharged } from '#gateway';
import type { BegunVideo } from '../run/make-videos.ts';
import type { VideoDoor } from './video-doors.ts';

/** Writes the answer to a request for videos, once its task is noted. Throws what the call throws. */
export async function writeBegun(
  { id, call, frames }: OpenedCall,
  door: VideoDoor,
  sink: ReplySink,
  onError: (error: unknown) => void,
): Promise<boolean> {
  const iterator = frames[Symbol.asyncIterator]();
  let provider = '';
  try {
    for (;;) {
      const next = await iterator.next();
      if (sink.closed) return true;
      if (next.done) throw new GatewayError('internal', 'Internal error');
      const { value } = next;
      if (value.type === 'head') provider = value.provider.name;
      if (value.type !== 'settled') continue;
      const begun = value.tail as BegunVideo;
      const text = JSON.stringify(door.answerOf(begun, Math.floor(call.startedAt / 1000)));
      sink.head(200, {
        'content-type': 'application/json; charset=utf-8',
        'content-length': Buffer.byteLength(text),
        'x-generation-id': id,
        'x-provider': provider,
        'x-task-status': 'queued',
      });
      sink.end(text);
      // It is charged when the videos are here.
      return value.pending === true || wasCharged(value);
    }
  } catch (error) {
    if (!sink.closed) throw error;
    return false;
  } finally {
    iterator.return?.().catch(onError);
  }
}
