import type { ReplySink } from '#wire';
import { onceSettled, type StartedProviderCall, wasCharged } from '#gateway';
import type { BegunVideo } from '../run/make-videos.ts';

/** Writes the answer to a request for videos, after its task is stored. Throws the errors of the call. */
export const writeBegun = (
  opened: StartedProviderCall,
  answerOf: (begun: BegunVideo, created: number) => { readonly status: 200 | 202; readonly body: object },
  sink: ReplySink,
  onError: (error: unknown) => void,
): Promise<boolean> =>
  onceSettled(opened, sink, onError, (settled) => {
    const { id, call } = opened;
    const { status, body } = answerOf(settled.tail as BegunVideo, Math.floor(call.startedAt / 1000));
    const text = JSON.stringify(body);
    sink.head(status, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(text),
      'x-generation-id': id,
      'x-provider': settled.providerName,
      'x-task-status': 'queued',
    });
    sink.end(text);
    // A pending call is charged when the videos are here.
    return settled.pending === true || wasCharged(settled);
  });
