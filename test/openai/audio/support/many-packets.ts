/* WebM files with very many packets of Opus, each of 20 ms in seven bytes. */

const BLOCK = Buffer.from('a3858100008008', 'hex');
const CLUSTER = '1f43b675';
const START_OF_CLUSTER = Buffer.from('e78100', 'hex');

const hex = (text: string) => Buffer.from(text, 'hex');

/** The size of an element in eight bytes. */
function size(bytes: number): Buffer {
  const coded = Buffer.alloc(8);
  coded.writeBigUInt64BE(BigInt(bytes));
  coded[0]! |= 1;
  return coded;
}

function element(id: string, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([hex(id), size(content.length), content]);
}

const TRACK = element(
  '1654ae6b',
  element(
    'ae',
    element('d7', hex('01')),
    element('73c5', hex('01')),
    element('83', hex('02')),
    element('86', Buffer.from('A_OPUS')),
    element('63a2', hex('4f707573486561640101000080bb0000000000')),
    element('e1', element('b5', hex('473b8000')), element('9f', hex('01'))),
  ),
);

/** `block`: the bytes of a block. `before`: bytes between the track and the cluster. */
export function manyPackets(blocks: number, { block = BLOCK, before = Buffer.alloc(0) } = {}): Buffer {
  const cluster = element(CLUSTER, START_OF_CLUSTER, Buffer.alloc(blocks * block.length, block));
  const info = element('1549a966', element('2ad7b1', hex('0f4240')));
  const head = element('1a45dfa3', element('4282', Buffer.from('webm')));
  return Buffer.concat([head, element('18538067', info, TRACK, before, cluster)]);
}

/** A block with 255 packets of one byte, all of the same size. */
export const LACED = Buffer.concat([hex('a3'), size(5 + 255), hex('81000084fe'), Buffer.alloc(255, 8)]);
