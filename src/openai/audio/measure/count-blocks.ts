/*
 * Counts the elements of a Matroska or WebM file, before it is read. Whoever reads it takes a whole cluster into memory
 * at once, and a cluster of 30 MiB can have four million blocks.
 */

/** The ids of elements (RFC 8794 and RFC 9559) that hold other elements which are counted. */
const OPENED: ReadonlySet<number> = new Set([0x18538067, 0x1f43b675, 0xa0, 0x1654ae6b, 0x1c53bb6b]);
const SIMPLE_BLOCK = 0xa3;
const BLOCK = 0xa1;
/** A packet may stand in a group, with its length and its like. */
const ELEMENTS_PER_PACKET = 4;

/** Throws Error if the file has more than `most` packets, or more elements than so many packets take. */
export function refuseManyBlocks(file: Uint8Array, most: number): void {
  let packets = 0;
  let elements = 0;
  for (let at = 0; at < file.byteLength;) {
    elements += 1;
    if (file[at] === 0) {
      at = nextCluster(file, at);
      continue;
    }
    const idBytes = lengthAt(file, at);
    const sizeBytes = lengthAt(file, at + idBytes);
    const id = numberAt(file, at, idBytes);
    const body = at + idBytes + sizeBytes;
    const size = sizeAt(file, at + idBytes, sizeBytes);
    if (id === SIMPLE_BLOCK || id === BLOCK) packets += packetsOf(file, body);
    if (packets > most || elements > ELEMENTS_PER_PACKET * most) throw new Error('it has more packets than sound has');
    // The size of what is opened may be unknown, in files that are written while they are recorded.
    at = OPENED.has(id) ? body : body + size;
  }
}

/** The bytes of a number: one, and one more for each zero at the beginning of its first byte. */
const lengthAt = (file: Uint8Array, at: number): number => Math.clz32(file[at] ?? 0) - 23;

function numberAt(file: Uint8Array, at: number, bytes: number): number {
  let number = 0;
  for (let i = at; i < at + bytes; i += 1) number = number * 256 + (file[i] ?? 0);
  return number;
}

/** The size of an element, without the bit that ends the zeros of its first byte. */
const sizeAt = (file: Uint8Array, at: number, bytes: number): number =>
  ((file[at] ?? 0) & (0xff >> bytes)) * 256 ** (bytes - 1) + numberAt(file, at + 1, bytes - 1);

const CLUSTER = Buffer.from('1f43b675', 'hex');

/** Behind bytes that are no element, readers look for the next cluster. */
function nextCluster(file: Uint8Array, at: number): number {
  const clusterAt = Buffer.from(file.buffer, file.byteOffset, file.byteLength).indexOf(CLUSTER, at);
  return clusterAt < 0 ? file.byteLength : clusterAt;
}

const LACING = 0x06;

/** Several packets can share a block. After the number of the track: two bytes of time, flags, and their number. */
function packetsOf(file: Uint8Array, body: number): number {
  const flags = body + lengthAt(file, body) + 2;
  return ((file[flags] ?? 0) & LACING) === 0 ? 1 : (file[flags + 1] ?? 0) + 1;
}
