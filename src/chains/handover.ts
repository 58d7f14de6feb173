import type { Chain, IncomingPage, SignedPayment, SignedPayout } from './chain.ts';
import { plainAddress } from './plain-address.ts';

/**
 * The chain of a treasury that takes over from another. New payments go to the new address. Transfers to the old
 * address are still seen, its signed payouts are still looked after, and both balances count as one.
 */
export function createHandover(current: Chain, previous: Chain): Chain {
  const { network } = current;
  if (plainAddress(network, current.treasury) === plainAddress(network, previous.treasury))
    throw new Error(
      `the treasury of ${network} cannot hand over to itself: the previous key is also the key of ${current.treasury}. Set the new key, or remove the previous key`,
    );
  const isPrevious = (address: unknown) =>
    typeof address === 'string' && plainAddress(network, address) === plainAddress(network, previous.treasury);
  const ofPayment = ({ requirements }: SignedPayment) => (isPrevious(requirements.payTo) ? previous : current);
  const ofPayout = (signed: SignedPayout) => (isPrevious(current.payerOf(signed)) ? previous : current);

  /**
   * Reads the transfers to both treasuries. Their balances must be known at the same height, so the one that is behind
   * is read first, up to the height of the other.
   */
  async function incoming(text: string | null): Promise<IncomingPage> {
    if (text === null) {
      const begun = ofBoth(await current.incoming(null), await previous.incoming(null));
      // Transfers before the beginning are part of the opening balance.
      return { ...(await incoming(begun.cursor)), events: [] };
    }
    const [after, afterPrevious] = cursorsOf(text);
    const [height, heightPrevious] = [heightOf(after), heightOf(afterPrevious)];
    if (height !== heightPrevious) {
      const caughtUp =
        height < heightPrevious
          ? ofBoth(await current.incoming(after, heightPrevious), nothingAt(afterPrevious))
          : ofBoth(nothingAt(after), await previous.incoming(afterPrevious, height));
      // If the one that is behind cannot reach that height, both are read: it may be able to reach the next height of
      // the other.
      if (caughtUp.cursor !== text) return caughtUp;
    }
    const now = await current.incoming(after);
    return ofBoth(now, await previous.incoming(afterPrevious, now.height));
  }

  return {
    network,
    asset: current.asset,
    treasury: current.treasury,
    paymentsNameAccounts: current.paymentsNameAccounts,
    handover: { current, previous },

    async open() {
      await previous.open();
      await current.open();
    },
    requirements: current.requirements,
    ...(current.draft === undefined ? {} : { draft: current.draft }),
    read: (payment) => (isPrevious(payment.accepted.payTo) ? previous : current).read(payment),
    verify: (payment) => ofPayment(payment).verify(payment),
    submit: (payment) => ofPayment(payment).submit(payment),
    find: (payment, transaction) => ofPayment(payment).find(payment, transaction),

    incoming,
    async balanceAt(text) {
      const [now, before] = cursorsOf(text);
      // Balances at two different heights cannot be added.
      if (heightOf(now) !== heightOf(before)) return null;
      const [held, left] = await Promise.all([current.balanceAt(now), previous.balanceAt(before)]);
      return held === null || left === null ? null : held + left;
    },

    addressFault: (address) => current.addressFault(address) ?? previous.addressFault(address),
    // The old treasury signs only payouts to the new one.
    sign: (payout, signed) => (payout.to === current.treasury ? previous : current).sign(payout, signed),
    send: (payout, signed) => ofPayout(signed).send(payout, signed),
    findPayout: (payout, signed, transaction) => ofPayout(signed).findPayout(payout, signed, transaction),
    payerOf: current.payerOf,

    close() {
      current.close();
      previous.close();
    },
  };
}

const nothingAt = (cursor: string): IncomingPage => ({ events: [], cursor, height: heightOf(cursor), more: false });

const ofBoth = (now: IncomingPage, before: IncomingPage): IncomingPage => ({
  events: [...now.events, ...before.events],
  cursor: joined(now.cursor, before.cursor),
  height: now.height < before.height ? now.height : before.height,
  more: now.more || before.more,
});

/** The cursor of a handover: the cursor of the new treasury, then the cursor of the old one. */
export const joined = (current: string, previous: string): string => `${current}|${previous}`;

/** Both cursors of a handover. */
export function cursorsOf(text: string): readonly [string, string] {
  const [current, previous, more] = text.split('|');
  if (current === undefined || previous === undefined || more !== undefined)
    throw new Error(`Not a cursor of two treasuries: ${JSON.stringify(text.slice(0, 200))}`);
  return [current, previous];
}

/** All cursors begin with their height. */
export const heightOf = (cursor: string): bigint => BigInt(/^\d*/.exec(cursor)![0]);
