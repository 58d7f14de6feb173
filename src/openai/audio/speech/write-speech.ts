import type { ClientSink, Dialect, ReplySink } from '#http';
import type { StartedProviderCall } from '#call';
import { withCost } from '../shown-usage.ts';
import { errorEvent, eventOf, EVENTS_TYPE, type StreamedAnswer, writeStream } from '../write-stream.ts';
import { type SpeechFormat, speechType } from './speech-schema.ts';
import type { SpeechResult } from './speech-reader.ts';

interface WriteSpeechOptions extends Pick<StreamedAnswer<SpeechResult>, 'dropped' | 'onError'> {
  readonly format: SpeechFormat;
  /** Events with the sound in base64, instead of the sound itself. */
  readonly events: boolean;
  readonly dialect: Dialect;
  /** The connection, which is cut if the sound breaks off. */
  readonly client: ClientSink;
}

const NOTHING = new Uint8Array(0);

export const writeSpeech = (
  startedCall: StartedProviderCall<SpeechResult, Uint8Array>,
  { format, events, dialect, dropped, client, onError }: WriteSpeechOptions,
  sink: ReplySink,
): Promise<boolean> =>
  writeStream(
    startedCall,
    {
      what: 'speech',
      headersOf: (first) => (events ? EVENTS_TYPE : { 'content-type': speechType(first, format) }),
      pieceOf: (sound) => (events ? deltaEvent(sound) : sound),
      endOf: ({ usage }, settlement, receipt) =>
        events ? eventOf({ type: 'speech.audio.done', usage: withCost(usage, settlement, receipt) }) : NOTHING,
      brokenOf(error) {
        if (events) return errorEvent(error, dialect);
        // Sound has no place for an error, and what ends like whole sound would be taken for it.
        client.cut();
        return NOTHING;
      },
      dialect,
      dropped,
      onError,
    },
    sink,
  );

function deltaEvent(sound: Uint8Array): Buffer {
  const bytes = Buffer.from(sound.buffer, sound.byteOffset, sound.byteLength);
  return eventOf({ type: 'speech.audio.delta', audio: bytes.toString('base64') });
}
