import { foldName, isObject } from '#wire';

/** Sound in a request, whose bytes bound its seconds. */
export interface Sound {
  /** Bytes of its base64. */
  readonly bytes: number;
  /** The most tokens that its bytes can have. */
  readonly tokens: number;
}

export const NO_SOUND: Sound = { bytes: 0, tokens: 0 };

/** The sum; null if one of them is null. */
export function addSound(one: Sound | null, other: Sound | null): Sound | null {
  if (one === null || other === NO_SOUND) return one;
  return other === null ? null : { bytes: one.bytes + other.bytes, tokens: one.tokens + other.tokens };
}

/** The most tokens of a second that a model hears: 32 at Google, 10 at OpenAI. */
const TOKENS_PER_S = 32;
/** The lowest rate of speech. A header may say less, and then a few bytes are hours. */
const HZ_LEAST = 8_000;
/** MP3 has at least 8 kbit/s. */
const MP3_BYTES_PER_S = 1_000;

/**
 * The sound in a member of a request: base64, its data URL, or an object that has them. Returns null if its bytes do
 * not bound its seconds, as with an address or a format that compresses silence: FLAC has hours of it in a few
 * kilobytes.
 */
export function soundOf(value: unknown): Sound | null {
  if (typeof value === 'string') return soundIn('', value);
  if (!isObject(value)) return null;
  const { format, mimeType = format } = value;
  let sound: Sound | null = NO_SOUND;
  for (const [name, member] of Object.entries(value)) {
    if (member === null || member === undefined || FORMAT.test(foldName(name))) continue;
    sound = addSound(sound, typeof member === 'string' ? soundIn(String(mimeType ?? ''), member) : null);
  }
  return sound === NO_SOUND ? null : sound;
}

const FORMAT = /^(?:format|mimetype)$/;

function soundIn(formatName: string, givenData: string): Sound | null {
  const address = /^\s*data:([^,]{0,128}),/i.exec(givenData.slice(0, 256));
  const base64 = address === null ? givenData : givenData.slice(address[0].length);
  if (/^\s*[a-z][\w.+-]*:/i.test(base64.slice(0, 64))) return null;
  const bytesPerSecond =
    rawRate(address?.[1] ?? formatName) ?? waveRate(base64) ?? (isMp3(base64) ? MP3_BYTES_PER_S : null);
  if (bytesPerSecond === null) return null;
  return { bytes: givenData.length, tokens: Math.ceil((((base64.length * 3) / 4) * TOKENS_PER_S) / bytesPerSecond) };
}

const RAW = /^(?:audio\/)?(?:pcm(?:16|24)?|l16|g711_[au]law|pcm[au])(?:;|$)/i;

/** The fewest bytes of a second in a raw format; null for any other format. */
function rawRate(format: string): number | null {
  if (!RAW.test(format)) return null;
  const rate = Number(/rate=(\d+)/i.exec(format)?.[1] ?? HZ_LEAST);
  return rate >= HZ_LEAST ? rate : null;
}

/** Bytes of a second, as the header of a WAV file with PCM says; null for anything else. */
function waveRate(base64: string): number | null {
  const head = Buffer.from(base64.slice(0, 64), 'base64');
  if (head.length < 36 || head.toString('latin1', 0, 4) !== 'RIFF' || head.toString('latin1', 8, 16) !== 'WAVEfmt ')
    return null;
  const [tag, channels, rate, bits] = [20, 22, 24, 34].map((at) =>
    at === 24 ? head.readUInt32LE(at) : head.readUInt16LE(at),
  ) as [number, number, number, number];
  const isPcm = (tag === 1 || tag === 3) && channels > 0 && bits >= 8 && rate >= HZ_LEAST;
  return isPcm ? (rate * channels * bits) / 8 : null;
}

/** Whether data begins with a frame of MP3, after its ID3 tag. */
function isMp3(base64: string): boolean {
  const head = bytesAt(base64, 0, 10);
  if (head.length < 4 || head.toString('latin1', 0, 3) !== 'ID3') return isFrame(head);
  if (head.length < 10) return false;
  const size = ((head[6]! & 127) << 21) | ((head[7]! & 127) << 14) | ((head[8]! & 127) << 7) | (head[9]! & 127);
  return isFrame(bytesAt(base64, size + 10, 4));
}

/** MPEG audio of layer III, with a bit rate. */
const isFrame = (bytes: Buffer): boolean =>
  bytes.length >= 4 && bytes[0] === 0xff && (bytes[1]! & 0xe6) === 0xe2 && bytes[2]! >> 4 > 0 && bytes[2]! >> 4 < 15;

function bytesAt(base64: string, at: number, count: number): Buffer {
  const from = Math.floor(at / 3) * 4;
  const skipped = at % 3;
  return Buffer.from(base64.slice(from, from + Math.ceil((skipped + count) / 3) * 4), 'base64').subarray(skipped);
}

/** The most tokens of a second that a model speaks: 21 at OpenAI, 25 at Google. */
export const SPOKEN_TOKENS_PER_S = 25;

/**
 * Bytes of a second, as vendors make speech at their low rates: MP3 with 32 kbit/s, Opus with 24, AAC with 48, and raw
 * sound of 24,000 samples of 16 bits, of which FLAC needs half.
 */
const LOW_BYTES_PER_S = {
  mp3: 4_000,
  opus: 3_000,
  aac: 6_000,
  flac: 24_000,
  wav: 48_000,
  pcm: 48_000,
} as const;

type SoundFormat = keyof typeof LOW_BYTES_PER_S;

export const secondsOf = (format: SoundFormat, bytes: number): number => bytes / LOW_BYTES_PER_S[format];

/** The most tokens that sound of a chat has if a vendor makes it at the low rate of this format. */
export function spokenTokens(format: unknown, bytes: number): number {
  const name = format === 'pcm16' ? 'pcm' : String(format);
  const known = Object.hasOwn(LOW_BYTES_PER_S, name) ? (name as SoundFormat) : 'opus';
  return Math.ceil(secondsOf(known, bytes) * SPOKEN_TOKENS_PER_S);
}
