import { ChainUnavailable, type Chain } from './chain.ts';
import type { ChainBook, ChainRows } from './chain-rows.ts';
import { cursorsOf, heightOf, joined } from './handover.ts';
import type { HandoverCare } from './handover-care.ts';
import type { OnProblem } from './problem.ts';

export interface HandoverBooksOptions {
  readonly chain: Chain;
  readonly rows: ChainRows;
  readonly handoverCare: HandoverCare;
  readonly onProblem: OnProblem;
}

/** The books of a chain during a handover of its treasury. */
interface HandoverBooks {
  /**
   * Updates the books to the treasuries of the configuration. Rejects with ChainUnavailable, and with Error if the
   * books belong to other treasuries.
   */
  handOver(book: ChainBook): Promise<ChainBook>;
  /** Moves the remaining money of the old treasury, and stores whether it is empty. */
  careForPrevious(): Promise<void>;
}

export function createHandoverBooks(
  options: HandoverBooksOptions & { readonly bookOf: () => Promise<ChainBook> },
): HandoverBooks {
  const { chain, rows, handoverCare, bookOf, onProblem } = options;
  const { network } = chain;

  const otherBooks = ({ asset, treasury, previous }: ChainBook): Error =>
    new Error(
      previous === null
        ? `the books of ${network} are of treasury ${treasury} and asset ${asset}, and the configuration names ${chain.treasury} and ${chain.asset}: set the key and the asset back, or set the key of ${treasury} as previous_private_key to hand over to ${chain.treasury}`
        : `the books of ${network} are of treasury ${treasury}, which takes over from ${previous}, and of asset ${asset}: set both keys and the asset back`,
    );

  const handOver = async (book: ChainBook): Promise<ChainBook> => {
    if (book.asset !== chain.asset) throw otherBooks(book);
    const previous = chain.handover?.previous.treasury ?? null;
    if (book.treasury === chain.treasury && book.previous === previous) return book;
    if (chain.handover && book.treasury === previous && book.previous === null) {
      const { current } = chain.handover;
      const { cursor } = await current.incoming(null);
      const opening = await current.balanceAt(cursor);
      if (opening === null)
        throw new ChainUnavailable(`the balance of ${chain.treasury} on ${network} cannot be read at the moment`);
      await rows.beginHandover(book, {
        treasury: chain.treasury,
        opening,
        // The height is in the id, because an address may take over a second time with another opening.
        openingId: `opening:${network}/${chain.treasury}/${heightOf(cursor)}`,
        cursor: joined(cursor, book.cursor),
      });
      onProblem('info', 'a treasury hands over to another', { network, from: previous, to: chain.treasury });
    } else if (book.treasury === chain.treasury && book.previous !== null && previous === null) {
      const leaveIt =
        'leave its key in previous_private_key or previous_keypair_file until GET /admin/v1/payments says previous_empty';
      if (!book.previousEmpty)
        throw new Error(
          `the previous treasury of ${network}, ${book.previous}, was not empty at the last comparison: ${leaveIt}`,
        );
      // A payment may have begun since the last comparison. Without the key its outcome could not be found.
      if (await handoverCare.isUnderWay(chain, book.previous))
        throw new Error(
          `a payment to or from the previous treasury of ${network}, ${book.previous}, is pending: ${leaveIt}`,
        );
      await rows.endHandover(book, cursorsOf(book.cursor)[0]);
    } else throw otherBooks(book);
    return handOver(await bookOf());
  };

  const careForPrevious = async (): Promise<void> => {
    const { previous } = chain.handover ?? {};
    if (previous === undefined) return;
    const heldAt = (cursor: string) => previous.balanceAt(cursorsOf(cursor)[1]);
    await handoverCare.empty(chain, async () => {
      const { cursor } = await bookOf();
      const amount = await heldAt(cursor);
      return amount === null ? null : { amount, height: heightOf(cursorsOf(cursor)[1]) };
    });
    const { cursor } = await bookOf();
    const held = await heldAt(cursor);
    if (held === null) return;
    const isEmpty = held === 0n && !(await handoverCare.isUnderWay(chain, previous.treasury));
    await rows.noteEmpty(network, cursor, isEmpty);
  };

  return { handOver, careForPrevious };
}
