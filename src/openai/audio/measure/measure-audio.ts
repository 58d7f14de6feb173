import { GatewayError } from '#errors';
import { ReadingThread } from '#wire/replies';

export type AudioFormat = keyof typeof MEDIA_TYPES;

export const MEDIA_TYPES = {
  mp3: 'audio/mpeg',
  m4a: 'audio/mp4',
  wav: 'audio/wav',
  webm: 'audio/webm',
  ogg: 'audio/ogg',
  flac: 'audio/flac',
  aac: 'audio/aac',
} as const;

export const FORMATS_IN_WORDS = 'mp3, mp4, m4a, wav, webm, ogg, flac or aac';

export interface MeasuredAudio {
  /** Found in the bytes of the file, whatever its name says. */
  readonly format: AudioFormat;
  /** The length of the sound. Not 0. */
  readonly seconds: number;
  /**
   * The length for a provider that does not report it: more than `seconds`, if the file has bytes behind its sound that
   * decoders of its format play, such as a second stream.
   */
  readonly secondsHeard: number;
  /** The most that a decoder can find in it: more, if the file has bytes that do not belong to the sound. */
  readonly secondsMax: number;
}

/** Bounds of one file: time of a processor, and memory beside its bytes. One of 30 MiB takes about a second. */
const CPU_MS = 2_000;
const HEAP_MIB = 256;
/** Such a file has a minute of sound or so, and waits for no larger one. */
const SMALL_BYTES = 2 ** 20;

const WORKER = new URL('./measure-worker.ts', import.meta.url);
const threads = { small: new ReadingThread(HEAP_MIB), large: new ReadingThread(HEAP_MIB) };

/**
 * Measures the sound in a file, in a thread of its own, because the work for a file is what its author wants it to be.
 * `share`: files of one share wait for one another. Rejects with GatewayError `invalid_request`.
 */
export async function measureAudio(bytes: Buffer, share: string): Promise<MeasuredAudio> {
  const thread = bytes.byteLength <= SMALL_BYTES ? threads.small : threads.large;
  let measured: MeasuredAudio | null;
  try {
    measured = (await thread.readFile(share, WORKER, bytes, CPU_MS)) as MeasuredAudio | null;
  } catch (error) {
    throw refusal('cannot be read', error);
  }
  if (measured === null || !Number.isFinite(measured.secondsMax)) throw refusal('has no sound that can be measured');
  return measured;
}

const refusal = (why: string, cause?: unknown) =>
  new GatewayError('invalid_request', `file ${why}. It must be a file of the format ${FORMATS_IN_WORDS}`, {
    param: 'file',
    ...(cause === undefined ? {} : { cause }),
  });
