import {
  ADTS,
  BufferSource,
  EncodedPacketSink,
  FLAC,
  Input,
  type InputAudioTrack,
  type InputFormat,
  type InputTrack,
  MATROSKA,
  MP3,
  MP4,
  OGG,
  QTFF,
  UnsupportedInputFormatError,
  WAVE,
  WEBM,
} from 'mediabunny';
import type { AudioFormat, MeasuredAudio } from './measure-audio.ts';
import { refuseManyBlocks } from './count-blocks.ts';
import { aacSeconds, adtsSeconds, LEAST_BYTES_PER_S, mp3Seconds, opusSeconds } from './packet-seconds.ts';

/*
 * Measures the sound in a file, in a thread of its own. The packets are counted, and no header is believed: the
 * duration in a header (`mvhd`, Xing, the size of a WAV's data) is what the author of the file wants it to be.
 */

/** The formats that are read. Playlists (HLS) are left out, because they name other files. */
const FORMATS = new Map<InputFormat, AudioFormat>([
  [WAVE, 'wav'],
  [OGG, 'ogg'],
  [FLAC, 'flac'],
  [MP4, 'm4a'],
  [QTFF, 'm4a'],
  [WEBM, 'webm'],
  [MATROSKA, 'webm'],
  [MP3, 'mp3'],
  [ADTS, 'aac'],
]);

/** Containers with timestamps of their own. In the others the packets themselves say how long they are. */
const TIMED: ReadonlySet<AudioFormat> = new Set(['m4a', 'webm']);

/** The packets of two and a half hours, if each has 20 ms, which is usual. */
const PACKETS_MAX = 450_000;
/** The shortest packet of any codec has 2.5 ms (Opus). */
const PACKETS_PER_S = 400;
/** Files whose timestamps are wrong have a few too many. */
const PACKETS_SLACK = 10_000;
const TRACKS_MAX = 64;

/** Bytes beside the sound that any file may have: its headers, its tags, and what stands around each packet. */
const HEADERS_BYTES = 64 * 1024;
const PACKET_HEADER_BYTES = 16;

/**
 * Resolves with the MeasuredAudio of a file; null if it has no known format or no sound. Rejects if the file is broken.
 */
export async function run(args: unknown): Promise<{ readonly value: MeasuredAudio | null; readonly transfer: [] }> {
  const { bytes } = args as { readonly bytes: ArrayBuffer };
  using input = new Input({ formats: [...FORMATS.keys()], source: new BufferSource(bytes) });
  try {
    return { value: await measure(input, new Uint8Array(bytes)), transfer: [] };
  } catch (error) {
    if (!(error instanceof UnsupportedInputFormatError)) throw error;
    return { value: null, transfer: [] };
  }
}

async function measure(input: Input, file: Uint8Array): Promise<MeasuredAudio | null> {
  const fileBytes = file.byteLength;
  const format = FORMATS.get(await input.getFormat());
  if (format === undefined) return null;
  if (format === 'webm') refuseManyBlocks(file, PACKETS_MAX);
  let packetsLeft = PACKETS_MAX;
  let seconds = 0;
  let explained = HEADERS_BYTES;
  let bytesPerS: number | null = null;
  const tracks = await input.getTracks();
  if (tracks.length > TRACKS_MAX) throw new Error(`it has more than ${TRACKS_MAX} tracks`);
  for (const track of tracks) {
    const counted = await countPackets(track, format, Math.min(packetsLeft, fileBytes));
    packetsLeft -= counted.packets;
    explained += PACKET_HEADER_BYTES * counted.packets;
    if (!track.isAudioTrack()) {
      explained += counted.bytes;
      continue;
    }
    bytesPerS = await rawBytesPerS(track);
    // Timestamps and the size of a sample are what the file says. A decoder goes by the bytes.
    seconds = Math.max(seconds, counted.seconds, bytesPerS === null ? 0 : counted.bytes / bytesPerS);
    if (counted.counted || bytesPerS !== null || !TIMED.has(format)) explained += counted.bytes;
  }
  // A decoder may read what the file does not say that it has: behind the end of a WAV's data, a second stream of an
  // Ogg file, a frame that is disguised as a header.
  const hidden = Math.max(0, fileBytes - explained);
  if (bytesPerS !== null) seconds += hidden / bytesPerS;
  if (seconds === 0) return null;
  const hiddenS = bytesPerS === null ? hidden / LEAST_BYTES_PER_S : 0;
  const hiddenBytes = bytesPerS === null && !TIMED.has(format) ? Math.max(0, hidden - skippedBytes(file)) : 0;
  return {
    format,
    seconds,
    secondsHeard: seconds + hiddenBytes / LEAST_BYTES_PER_S,
    secondsMax: seconds + hiddenS,
  };
}

const ID3_HEADER_BYTES = 10;
const BLOCK_HEADER_BYTES = 4;

/** Bytes at the beginning that every decoder skips: tags with pictures (ID3v2), and the metadata of FLAC. */
function skippedBytes(file: Uint8Array): number {
  const text = (at: number, count: number) => String.fromCharCode(...file.subarray(at, at + count));
  const byte = (at: number) => file[at] ?? 0;
  let at = 0;
  while (text(at, 3) === 'ID3')
    at += ID3_HEADER_BYTES + [6, 7, 8, 9].reduce((size, place) => size * 128 + (byte(at + place) & 127), 0);
  if (text(at, 4) !== 'fLaC') return at;
  at += 4;
  for (let isLast = false; !isLast && at < file.byteLength;) {
    isLast = byte(at) > 127;
    at += BLOCK_HEADER_BYTES + byte(at + 1) * 65_536 + byte(at + 2) * 256 + byte(at + 3);
  }
  return at;
}

interface CountedPackets {
  readonly packets: number;
  readonly bytes: number;
  /** The length of an audio track: by its timestamps or by its packets, whichever is more. */
  readonly seconds: number;
  /** The length of a packet is known from its codec. */
  readonly counted: boolean;
}

/**
 * Throws Error for more than `most` packets, and for more than sound can have. `most` is no more than the file has
 * bytes: tables may have no end, or name the same bytes again.
 */
async function countPackets(track: InputTrack, format: AudioFormat, most: number): Promise<CountedPackets> {
  const length = track.isAudioTrack() ? await packetLength(track, format) : null;
  const options = { metadataOnly: !(length?.needsData ?? false) };
  const sink = new EncodedPacketSink(track);
  let packets = 0;
  let bytes = 0;
  let end = 0;
  let sum = 0;
  for (let packet = await sink.getFirstPacket(options); packet; packet = await sink.getNextPacket(packet, options)) {
    packets++;
    bytes += packet.byteLength;
    end = Math.max(end, packet.timestamp + packet.duration);
    sum += length === null ? 0 : length.lengthOf(packet.data);
    if (packets > most || packets > PACKETS_SLACK + Math.max(end, sum) * PACKETS_PER_S)
      throw new Error('it has more packets than sound has');
  }
  return { packets, bytes, seconds: Math.max(end, sum), counted: length !== null };
}

interface PacketLength {
  /** Whether the bytes of a packet say how long it is. */
  readonly needsData: boolean;
  /** Seconds. */
  lengthOf(packet: Uint8Array): number;
}

const byData = (lengthOf: PacketLength['lengthOf']): PacketLength => ({ needsData: true, lengthOf });

/** The length of a packet by its codec; null for codecs whose length only the container says. */
async function packetLength(track: InputAudioTrack, format: AudioFormat): Promise<PacketLength | null> {
  const codec = await track.getCodec();
  if (codec === 'opus') return byData(opusSeconds);
  if (codec === 'mp3') return byData(mp3Seconds);
  if (codec !== 'aac') return null;
  if (format === 'aac') return byData(adtsSeconds);
  const config = (await track.getDecoderConfig()) as { readonly description?: unknown } | null;
  const description = bytesOf(config?.description);
  const seconds = description === null ? null : aacSeconds(description);
  return seconds === null ? null : { needsData: false, lengthOf: () => seconds };
}

function bytesOf(data: unknown): Uint8Array | null {
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return data instanceof ArrayBuffer ? new Uint8Array(data) : null;
}

/** Bytes of a second of sound without compression; null for any other. */
async function rawBytesPerS(track: InputAudioTrack): Promise<number | null> {
  const codec = await track.getCodec();
  const bits = codec === 'ulaw' || codec === 'alaw' ? 8 : Number(/^pcm-[suf](\d+)/.exec(codec ?? '')?.[1] ?? NaN);
  if (Number.isNaN(bits)) return null;
  return (bits / 8) * (await track.getNumberOfChannels()) * (await track.getSampleRate());
}
