import type { Hex } from 'viem';
import { ChainUnavailable } from '../chain.ts';
import type { EvmHeads } from './blocks.ts';
import { mayBeTooMuch, type EvmLog, type EvmNode, type LogFilter } from './rpc.ts';

/** Blocks in one request at the beginning. If the node refuses, requests get smaller, down to one block. */
const RANGE_MAX = 2000n;
/** Up to this range a refused request is halved, not quartered, because providers allow as few as 5 blocks. */
const SMALL_RANGE = 32n;
const ANSWERS_TO_DARE = 20;
/** The maximum of requests in one search. A day of Base takes 22. */
const QUESTIONS_MAX = 200;

/**
 * Requests the logs of a range of blocks, or of a part of it if the node refuses. Resolves with the logs and the last
 * block that they cover.
 */
export interface RangeReader {
  read(
    filter: Pick<LogFilter, 'address' | 'topics'>,
    from: bigint,
    to: bigint,
  ): Promise<{ readonly logs: EvmLog[]; readonly to: bigint }>;
  /** How many blocks it requests at present. */
  readonly range: bigint;
}

/**
 * Creates a reader that remembers how many blocks the node accepts, and requests more after several answers in a row.
 */
export function createRangeReader(node: EvmNode): RangeReader {
  let range = RANGE_MAX;
  let answered = 0;
  return {
    get range() {
      return range;
    },
    async read(filter, from, to) {
      for (;;) {
        const last = to - from + 1n > range ? from + range - 1n : to;
        try {
          const logs = await node.logs({ ...filter, in: { from, to: last } });
          answered += 1;
          if (answered >= ANSWERS_TO_DARE && range < RANGE_MAX) {
            range = range * 2n > RANGE_MAX ? RANGE_MAX : range * 2n;
            answered = 0;
          }
          return { logs, to: last };
        } catch (error) {
          const width = last - from + 1n;
          if (!mayBeTooMuch(error) || width <= 1n) throw error;
          answered = 0;
          range = width / (width > SMALL_RANGE ? 4n : 2n);
        }
      }
    },
  };
}

/** Final blocks without a log that was searched. */
export interface SearchedBlocks {
  readonly first: bigint;
  readonly last: bigint;
}

interface LogSearch {
  readonly address: Hex;
  readonly topics: LogFilter['topics'];
  /** The time range of the block, in epoch seconds. */
  readonly notBefore: bigint;
  readonly notAfter: bigint;
}

/**
 * Finds the newest log that matches, by a search backwards in time. null: no such log exists in that time. Throws
 * ChainUnavailable if the time is too long for one search. The next search goes on from there: `searched` has the
 * blocks of the searches before, and `note` gets the blocks to pass to the next one.
 */
export async function findNewestLog(
  node: EvmNode,
  reader: RangeReader,
  heads: EvmHeads,
  search: LogSearch & { readonly searched: SearchedBlocks | null; readonly note: (blocks: SearchedBlocks) => void },
): Promise<EvmLog | null> {
  const { searched } = search;
  const top = await lastBlockBefore(node, heads, search.notAfter);
  let last = top;
  for (let questions = 0; questions < QUESTIONS_MAX; questions++) {
    if (searched && last >= searched.first && last <= searched.last) last = searched.first - 1n;
    if (last < 0n) return null;
    const reach = last >= reader.range ? last - reader.range + 1n : 0n;
    const first = searched && last > searched.last && reach <= searched.last ? searched.last + 1n : reach;
    // Within a piece the search goes forwards, because the reader may return only its beginning.
    let newest: EvmLog | null = null;
    for (let from = first; from <= last;) {
      const part = await reader.read(search, from, last);
      newest = part.logs.at(-1) ?? newest;
      from = part.to + 1n;
      questions += 1;
    }
    if (newest) return newest;
    if (first === 0n) return null;
    const block = await node.block(first);
    if (!block) throw new ChainUnavailable(`The node does not know block ${first}`);
    if (block.timestamp < search.notBefore) return null;
    last = first - 1n;
  }
  // A block that is not final may still be replaced by one with the log.
  const final = heads.final.number < top ? heads.final.number : top;
  if (last < final) search.note({ first: last + 1n, last: final });
  throw new ChainUnavailable(`No log was found in ${QUESTIONS_MAX} searches back from block ${top} to ${last + 1n}`);
}

/**
 * Finds the newest block that is not later than a moment, by binary search: 25 requests for 30 million blocks, none if
 * the newest block is early enough.
 */
async function lastBlockBefore(node: EvmNode, heads: EvmHeads, moment: bigint): Promise<bigint> {
  if (heads.latest.timestamp <= moment) return heads.latest.number;
  let low = 0n;
  let high = heads.latest.number;
  // The step grows until the block is early enough, because most searches are for the last minutes.
  for (let step = 64n; high > 0n; step *= 4n) {
    const at = high > step ? high - step : 0n;
    if ((await timestampOf(node, at)) <= moment) {
      low = at;
      break;
    }
    high = at;
  }
  while (high - low > 1n) {
    const middle = (low + high) / 2n;
    if ((await timestampOf(node, middle)) <= moment) low = middle;
    else high = middle;
  }
  return low;
}

async function timestampOf(node: EvmNode, number: bigint): Promise<bigint> {
  const block = await node.block(number);
  if (!block) throw new ChainUnavailable(`The node does not know block ${number}`);
  return block.timestamp;
}
