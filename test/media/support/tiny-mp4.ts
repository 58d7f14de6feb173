/** A whole MP4 file by its boxes: it says how long it plays, and its film is `bytes` long. */
export function tinyMp4(seconds: number | null, bytes = 1_000, fill = 7): Buffer {
  const film = Buffer.alloc(bytes, fill);
  return Buffer.concat([
    box('ftyp', Buffer.from('isom\0\0\0\0isomiso2')),
    box('free', Buffer.alloc(8)),
    box('mdat', film),
    box('moov', box('mvhd', movieHeader(seconds)), box('trak', Buffer.alloc(16))),
  ]);
}

export function box(type: string, ...content: readonly Buffer[]): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(8 + content.reduce((sum, { length }) => sum + length, 0));
  head.write(type, 4, 'latin1');
  return Buffer.concat([head, ...content]);
}

function movieHeader(seconds: number | null): Buffer {
  const fields = Buffer.alloc(100);
  fields.writeUInt32BE(1_000, 12);
  fields.writeUInt32BE(seconds === null ? 0 : Math.round(seconds * 1_000), 16);
  return fields;
}
