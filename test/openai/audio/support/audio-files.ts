import {
  BufferTarget,
  EncodedAudioPacketSource,
  EncodedPacket,
  MkvOutputFormat,
  Mp4OutputFormat,
  OggOutputFormat,
  Output,
  type OutputFormat,
  WebMOutputFormat,
} from 'mediabunny';

/* Files with sound whose length a test knows. The packets have no content, since only a decoder reads that. */

const RATE = 16_000;

/** A WAV of one channel with 16 bits. `dataSize`, `blockAlign`: what its header says, if that is a lie. */
export function wavFile(
  seconds: number,
  { dataSize, blockAlign = 2 }: { readonly dataSize?: number; readonly blockAlign?: number } = {},
): Buffer {
  const bytes = Math.round(seconds * RATE) * 2;
  const head = Buffer.alloc(44);
  head.write('RIFF', 0);
  head.writeUInt32LE(Math.min(36 + (dataSize ?? bytes), 0xffffffff), 4);
  head.write('WAVEfmt ', 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(RATE, 24);
  head.writeUInt32LE(RATE * 2, 28);
  head.writeUInt16LE(blockAlign, 32);
  head.writeUInt16LE(16, 34);
  head.write('data', 36);
  head.writeUInt32LE(dataSize ?? bytes, 40);
  return Buffer.concat([head, Buffer.alloc(bytes, 1)]);
}

/** The length of one packet of an MP3 of 44,100 Hz. */
export const MP3_FRAME_S = 1152 / 44_100;
const MP3_FRAME_BYTES = 417;

/**
 * An MP3 of 128 kbit/s. `xing`: the number of frames that its header says, if it has one. `disguised`: all frames but
 * the first look like such a header.
 */
export function mp3File(
  frames: number,
  { xing, disguised = false }: { readonly xing?: number; readonly disguised?: boolean } = {},
): Buffer {
  const frame = Buffer.alloc(MP3_FRAME_BYTES);
  frame.writeUInt32BE(0xfffb9000, 0);
  const tag = Buffer.from(frame);
  tag.write('Xing', 36);
  tag.writeUInt32BE(1, 40);
  tag.writeUInt32BE(xing ?? 1, 44);
  const rest = Array.from({ length: frames }, (_, at) => (disguised && at > 0 ? tag : frame));
  return Buffer.concat(xing === undefined ? rest : [tag, ...rest]);
}

const OPUS = { ms: 20, packet: () => new Uint8Array(60).fill(0x78, 0, 1) };

/** A file with Opus packets of 20 ms, in Ogg or WebM. `shownMs`: how long its timestamps say that a packet is. */
export async function opusFile(
  kind: 'ogg' | 'webm',
  packets: number,
  { shownMs = OPUS.ms, live = false }: { readonly shownMs?: number; readonly live?: boolean } = {},
): Promise<Buffer> {
  const format = kind === 'ogg' ? new OggOutputFormat() : new WebMOutputFormat({ appendOnly: live });
  const source = new EncodedAudioPacketSource('opus');
  return filled(format, source, packets, shownMs / 1000, OPUS.packet, {
    codec: 'opus',
    numberOfChannels: 1,
    sampleRate: 48_000,
    // OpusHead (RFC 7845): version 1, one channel, no pre-skip, 48,000 Hz.
    description: Buffer.from('4f707573486561640101000080bb0000000000', 'hex'),
  });
}

/** The length of one packet of AAC at 16,000 Hz. */
export const AAC_FRAME_S = 1024 / RATE;

/** An M4A. `shownS`: how long its tables say that a packet is. */
export async function m4aFile(packets: number, shownS = AAC_FRAME_S): Promise<Buffer> {
  const source = new EncodedAudioPacketSource('aac');
  return filled(new Mp4OutputFormat({ fastStart: 'in-memory' }), source, packets, shownS, () => new Uint8Array(120), {
    codec: 'mp4a.40.2',
    numberOfChannels: 1,
    sampleRate: RATE,
    // AudioSpecificConfig: AAC-LC, 16,000 Hz, one channel.
    description: new Uint8Array([0x14, 0x08]),
  });
}

/**
 * AAC-LC of 16,000 Hz in Matroska. `hz`: the frequency that its track says. `shownS`: how long its timestamps say that
 * a packet is.
 */
export async function mkvFile(packets: number, hz = RATE, shownS = AAC_FRAME_S): Promise<Buffer> {
  const source = new EncodedAudioPacketSource('aac');
  const file = await filled(new MkvOutputFormat(), source, packets, shownS, () => new Uint8Array(120), {
    codec: 'mp4a.40.2',
    numberOfChannels: 1,
    sampleRate: RATE,
    description: new Uint8Array([0x14, 0x08]),
  });
  const said = Buffer.alloc(4);
  said.writeFloatBE(RATE);
  file.writeFloatBE(hz, file.indexOf(said));
  return file;
}

/** An M4A whose AudioSpecificConfig says this. */
export async function m4aWith(packets: number, config: readonly number[], shownS: number): Promise<Buffer> {
  const source = new EncodedAudioPacketSource('aac');
  return filled(new Mp4OutputFormat({ fastStart: 'in-memory' }), source, packets, shownS, () => new Uint8Array(120), {
    codec: 'mp4a.40.2',
    numberOfChannels: 1,
    sampleRate: RATE,
    description: new Uint8Array(config),
  });
}

/** MP3 in MP4 or Matroska: each packet has this content. */
export async function mp3Within(
  kind: 'mp4' | 'mkv',
  packets: number,
  packet: Buffer,
  { hz = 44_100, shownS = MP3_FRAME_S }: { readonly hz?: number; readonly shownS?: number } = {},
): Promise<Buffer> {
  const format = kind === 'mp4' ? new Mp4OutputFormat({ fastStart: 'in-memory' }) : new MkvOutputFormat();
  const source = new EncodedAudioPacketSource('mp3');
  const config = { codec: 'mp3', numberOfChannels: 1, sampleRate: hz };
  return filled(format, source, packets, shownS, () => new Uint8Array(packet), config);
}

/** PCM of 16,000 Hz in MP4 or Matroska: packets of a second, and how long the timestamps say that one is. */
export async function pcmWithin(kind: 'mp4' | 'mkv', seconds: number, shownS: number): Promise<Buffer> {
  const format = kind === 'mp4' ? new Mp4OutputFormat({ fastStart: 'in-memory' }) : new MkvOutputFormat();
  const source = new EncodedAudioPacketSource('pcm-s16');
  return filled(format, source, seconds, shownS, () => new Uint8Array(RATE * 2).fill(1), {
    codec: 'pcm-s16',
    numberOfChannels: 1,
    sampleRate: RATE,
  });
}

/** Frames of 8 kbit/s: MPEG 2.5 of 8,000 Hz. */
export function slowMp3Frames(frames: number): Buffer {
  const frame = Buffer.alloc(SLOW_MP3_FRAME_BYTES);
  frame.writeUInt32BE(0xffe318c0, 0);
  return Buffer.concat(Array.from({ length: frames }, () => frame));
}

export const SLOW_MP3_FRAME_S = 576 / 8_000;
const SLOW_MP3_FRAME_BYTES = 72;

/** Frames of ADTS. `rates`: the index of the sampling frequency of each. */
export function adtsFile(rates: readonly number[]): Buffer {
  const length = 120;
  return Buffer.concat(
    rates.map((rate) => {
      const frame = Buffer.alloc(length);
      // MPEG-4 without a CRC, AAC-LC, one channel.
      frame.set([0xff, 0xf1, 0x40 | (rate << 2), 0x40, length >> 3, ((length & 7) << 5) | 0x1f, 0xfc]);
      return frame;
    }),
  );
}

async function filled(
  format: OutputFormat,
  source: EncodedAudioPacketSource,
  packets: number,
  seconds: number,
  packet: () => Uint8Array,
  decoderConfig: AudioDecoderConfig,
): Promise<Buffer> {
  const target = new BufferTarget();
  const output = new Output({ format, target });
  output.addAudioTrack(source);
  await output.start();
  for (let at = 0; at < packets; at++)
    await source.add(new EncodedPacket(packet(), 'key', at * seconds, seconds), { decoderConfig });
  await output.finalize();
  return Buffer.from(target.buffer!);
}
