import {
  BufferTarget,
  EncodedAudioPacketSource,
  EncodedPacket,
  Mp4OutputFormat,
  OggOutputFormat,
  Output,
  type OutputFormat,
  WebMOutputFormat,
} from 'mediabunny';

/* Files with sound whose length a test knows. The packets have no content, since only a decoder reads that. */

const RATE = 16_000;

/** A WAV of one channel with 16 bits. `dataSize`: what its header says, if that is a lie. */
export function wavFile(seconds: number, { dataSize }: { readonly dataSize?: number } = {}): Buffer {
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
  head.writeUInt16LE(2, 32);
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
    // oxlint-disable-next-line no-await-in-loop -- packets follow one another
    await source.add(new EncodedPacket(packet(), 'key', at * seconds, seconds), { decoderConfig });
  await output.finalize();
  return Buffer.from(target.buffer!);
}
