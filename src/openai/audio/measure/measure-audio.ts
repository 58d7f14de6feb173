import { GatewayError } from '#errors';
import { ReadingThread } from '#wire/replies';

/** Formats of files with sound, as their usual endings. */
export type AudioFormat = keyof typeof MEDIA_TYPES;

/** The media types of files with sound, by their usual endings. */
export const MEDIA_TYPES = {
  mp3: 'audio/mpeg',
  m4a: 'audio/mp4',
  wav: 'audio/wav',
  webm: 'audio/webm',
  ogg: 'audio/ogg',
  flac: 'audio/flac',
  aac: 'audio/aac',
} as const;

/** The formats in words, for errors and the reference. */
export const FORMATS_IN_WORDS = 'mp3, mp4, m4a, wav, webm, ogg, flac or aac';

/** The sound in a file. */
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

/** A file of 30 MiB takes a second of a processor, and so does the start of the thread. A busy machine is slower. */
const LEAST_MS = 5_000;
const MS_PER_MIB = 500;

const WORKER = new URL('./measure-worker.ts', import.meta.url);
const thread = new ReadingThread();

/**
 * Measures the sound in a file, in a thread of its own, because the work for a file is what its author wants it to be.
 * `account`: files of one account wait for one another. Rejects with GatewayError `invalid_request`.
 */
export async function measureAudio(bytes: Buffer, account: string): Promise<MeasuredAudio> {
  const copy = new Uint8Array(bytes).buffer;
  let found: MeasuredAudio | null;
  try {
    const deadlineMs = LEAST_MS + (MS_PER_MIB * bytes.byteLength) / 2 ** 20;
    found = (await thread.read(account, WORKER, { bytes: copy }, [copy], deadlineMs)) as MeasuredAudio | null;
  } catch (error) {
    throw refusal('cannot be read', error);
  }
  if (found === null || !Number.isFinite(found.secondsMax)) throw refusal('has no sound that can be measured');
  return found;
}

const refusal = (why: string, cause?: unknown) =>
  new GatewayError('invalid_request', `file ${why}. It must be a file of the format ${FORMATS_IN_WORDS}`, {
    param: 'file',
    ...(cause === undefined ? {} : { cause }),
  });
