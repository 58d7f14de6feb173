import type { Blob, Piece } from '#tasks';

/*
 * A ZIP archive without compression (APPNOTE.TXT 6.3.10, method 0). The checksums are known before, so the length of
 * the archive is known too.
 */

const LOCAL = 0x04_03_4b_50;
const CENTRAL = 0x02_01_4b_50;
const END = 0x06_05_4b_50;
const VERSION = 20;
/** Names are UTF-8. */
const FLAGS = 0x08_00;
/** The pieces of an archive of these files, under these names. Together they have less than 4 GiB. */
export function zipPieces(files: readonly { readonly name: string; readonly blob: Blob }[]): readonly Piece[] {
  const pieces: Piece[] = [];
  const directory: Buffer[] = [];
  let at = 0;
  for (const { name, blob } of files) {
    const written = Buffer.from(name, 'utf8');
    const common = commonFields(blob, written.length);
    const local = Buffer.alloc(4);
    local.writeUInt32LE(LOCAL);
    pieces.push(Buffer.concat([local, common, written]), blob);
    const head = Buffer.alloc(6);
    head.writeUInt32LE(CENTRAL);
    head.writeUInt16LE(VERSION, 4);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(at, 10);
    directory.push(Buffer.concat([head, common, tail, written]));
    at += local.length + common.length + written.length + blob.bytes;
  }
  const entries = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(END);
  end.writeUInt16LE(files.length, 8);
  end.writeUInt16LE(files.length, 10);
  end.writeUInt32LE(entries.length, 12);
  end.writeUInt32LE(at, 16);
  return [...pieces, Buffer.concat([entries, end])];
}

/** The fields that both headers have: from the version to the lengths of name and extra field. */
function commonFields({ bytes, crc32, createdAt }: Blob, nameLength: number): Buffer {
  const fields = Buffer.alloc(26);
  fields.writeUInt16LE(VERSION, 0);
  fields.writeUInt16LE(FLAGS, 2);
  const made = new Date(createdAt);
  fields.writeUInt16LE((made.getUTCHours() << 11) | (made.getUTCMinutes() << 5) | (made.getUTCSeconds() >> 1), 6);
  const day = ((made.getUTCFullYear() - 1980) << 9) | ((made.getUTCMonth() + 1) << 5) | made.getUTCDate();
  fields.writeUInt16LE(day, 8);
  fields.writeUInt32LE(crc32, 10);
  fields.writeUInt32LE(bytes, 14);
  fields.writeUInt32LE(bytes, 18);
  fields.writeUInt16LE(nameLength, 22);
  return fields;
}
