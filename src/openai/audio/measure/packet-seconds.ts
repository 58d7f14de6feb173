/*
 * The length of packets by their own bytes. A decoder goes by these, whatever the container says: a container may name
 * another frequency, or have many frames in one packet.
 */

/** Sound at 6 kbit/s, the lowest bitrate at which a codec keeps speech intelligible. */
export const LEAST_BYTES_PER_S = 750;

/** RFC 6716, section 3.1: the first byte has the length of the frames, and with the second one their number. */
export function opusSeconds(packet: Uint8Array): number {
  const [toc = 0, counted = 0] = packet;
  const kind = toc >> 3;
  const frameMs =
    kind < 12 ? [10, 20, 40, 60][kind & 3]! : kind < 16 ? [10, 20][kind & 1]! : [2.5, 5, 10, 20][kind & 3]!;
  const code = toc & 3;
  const frames = code === 0 ? 1 : code < 3 ? 2 : counted & 63;
  return (frames * frameMs) / 1000;
}

interface FoundFrame {
  readonly bytes: number;
  readonly seconds: number;
}

/** Adds up the frames of a packet. Bytes that are in none count as sound at the lowest bitrate. */
function framesIn(packet: Uint8Array, frameAt: (at: number) => FoundFrame | null): number {
  let seconds = 0;
  let at = 0;
  while (at < packet.byteLength) {
    const frame = frameAt(at);
    if (frame === null) break;
    seconds += frame.seconds;
    at += frame.bytes;
  }
  return seconds + Math.max(0, packet.byteLength - at) / LEAST_BYTES_PER_S;
}

const MPEG_1 = 3;
const MPEG_2 = 2;
/** By the two bits of the layer. */
const LAYER_1 = 3;
const LAYER_2 = 2;
/** Of MPEG 1, by the two bits of the frequency; MPEG 2 has half of them, MPEG 2.5 a quarter. */
const MPEG_HZ = [44_100, 48_000, 32_000];
/** In kbit/s, by the four bits of the bitrate. */
const KBITS = {
  first: {
    [LAYER_1]: [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
    [LAYER_2]: [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
    1: [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  },
  second: {
    [LAYER_1]: [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
    [LAYER_2]: [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
    1: [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
  },
} as const;

/** The frames of an MP3 by their headers (ISO/IEC 11172-3, section 2.4.2.3, and 13818-3). */
export const mp3Seconds = (packet: Uint8Array): number => framesIn(packet, (at) => mp3Frame(packet, at));

function mp3Frame(packet: Uint8Array, at: number): FoundFrame | null {
  const [sync = 0, kind = 0, rates = 0] = packet.subarray(at, at + 4);
  if (sync !== 0xff || kind < 0xe0) return null;
  const version = (kind >> 3) & 3;
  const layer = (kind >> 1) & 3;
  const fullHz = MPEG_HZ[(rates >> 2) & 3];
  if (version === 1 || layer === 0 || fullHz === undefined) return null;
  const isFirst = version === MPEG_1;
  const kbits = (isFirst ? KBITS.first : KBITS.second)[layer as 1 | 2 | 3][rates >> 4];
  if (!kbits) return null;
  const hz = fullHz / (isFirst ? 1 : version === MPEG_2 ? 2 : 4);
  const samples = layer === LAYER_1 ? 384 : layer === LAYER_2 || isFirst ? 1152 : 576;
  const slotBytes = layer === LAYER_1 ? 4 : 1;
  const slots = Math.floor((samples * kbits * 1000) / (8 * slotBytes * hz)) + ((rates >> 1) & 1);
  return { bytes: slots * slotBytes, seconds: samples / hz };
}

const AAC_HZ = [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350];
const AAC_SAMPLES = 1024;
const ADTS_HEADER_BYTES = 7;

/** The frames of AAC that have headers of their own (ADTS, ISO/IEC 13818-7, section 6.2). */
export const adtsSeconds = (packet: Uint8Array): number => framesIn(packet, (at) => adtsFrame(packet, at));

function adtsFrame(packet: Uint8Array, at: number): FoundFrame | null {
  const [sync = 0, kind = 0, rates = 0, high = 0, middle = 0, low = 0, blocks = 0] = packet.subarray(at, at + 7);
  const hz = AAC_HZ[(rates >> 2) & 15];
  const bytes = ((high & 3) << 11) | (middle << 3) | (low >> 5);
  if (sync !== 0xff || (kind & 0xf6) !== 0xf0 || hz === undefined || bytes < ADTS_HEADER_BYTES) return null;
  return { bytes, seconds: (((blocks & 3) + 1) * AAC_SAMPLES) / hz };
}

/**
 * The length of a packet of AAC with this AudioSpecificConfig (ISO/IEC 14496-3, section 1.6.2.1). Only the frequency of
 * the core counts: an extension (HE-AAC) adds samples and no time, and may name any frequency. null if it names none.
 */
export function aacSeconds(config: Uint8Array): number | null {
  const bits = [...config.subarray(0, 8)].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  const read = (from: number, count: number) => Number.parseInt(bits.slice(from, from + count).padEnd(count, '0'), 2);
  const from = read(0, 5) === 31 ? 11 : 5;
  const index = read(from, 4);
  const hz = index === 15 ? read(from + 4, 24) : AAC_HZ[index];
  return hz ? AAC_SAMPLES / hz : null;
}
