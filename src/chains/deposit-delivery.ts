import { setTimeout as pause } from 'node:timers/promises';
import { ChainUnavailable, PaymentProblem, type Chain, type SignedPayment } from './chain.ts';
import type { Crediting } from './deposit-crediting.ts';
import type { Deposit, DepositRows } from './deposit-rows.ts';
import type { OnProblem } from './problem.ts';

export interface DeliveryOptions {
  readonly rows: DepositRows;
  readonly crediting: Pick<Crediting, 'settle' | 'lost'>;
  /** null where it is not open yet. */
  readonly chainOf: (network: string) => Chain | null;
  /** How long the bringer of a payment waits for it to be credited. */
  readonly waitMs: number;
  readonly onProblem: OnProblem;
  readonly now: () => number;
  readonly signal: AbortSignal;
}

/** The chain's side of deposits: signed payments are submitted and looked for. */
export interface Delivery {
  /**
   * Waits until a payment is credited, or `waitMs` are over. `mine`: the caller made its row, so it submits the
   * payment and looks for it on the chain; others look at the row alone.
   */
  bringHome(deposit: Deposit, payment: SignedPayment, mine: boolean): Promise<void>;
  /** One look for a payment that nobody here waits for; submits it again where it may still come. */
  carryOn(deposit: Deposit, payment: SignedPayment): Promise<void>;
}

const FIRST_PAUSE_MS = 40;
const PAUSE_MAX_MS = 1_000;
const TELL_AGAIN_MS = 60_000;
/** Before the first look of somebody else than the bringer of a payment. */
const FIRST_LOOK_MS = 2_000;

const isUnderWay = (deposit: Deposit | null): deposit is Deposit =>
  deposit !== null && (deposit.state === 'received' || deposit.state === 'crediting');

export function createDelivery(options: DeliveryOptions): Delivery {
  const { rows, crediting, chainOf, waitMs, onProblem, now, signal } = options;
  const toldAt = new Map<string, number>();
  /** Payments that this process is bringing home. */
  const driven = new Map<string, Promise<void>>();

  /** Asks the chain, and does what follows. Resolves with whether the payment may still come. */
  const look = async (deposit: Deposit, chain: Chain, payment: SignedPayment): Promise<boolean> => {
    const sight = await chain.find(payment, deposit.transaction);
    if (sight.state === 'settled') await crediting.settle(deposit, sight.event);
    else if (sight.state === 'lost') await crediting.lost(deposit, sight.reason);
    return sight.state === 'open';
  };

  const submit = async (id: string, chain: Chain, payment: SignedPayment): Promise<void> => {
    const { transaction } = await chain.submit(payment);
    if (transaction !== null) await rows.noteTransaction(id, transaction);
  };

  /**
   * Tells the operator, at most once in TELL_AGAIN_MS, why payments cannot be given to a chain: only he can fill a
   * treasury that has no gas.
   */
  const notSubmitted = (network: string, error: ChainUnavailable): void => {
    if (now() - (toldAt.get(network) ?? 0) < TELL_AGAIN_MS) return;
    toldAt.set(network, now());
    onProblem('warn', 'a payment could not be given to its chain; it is tried again', {
      network,
      reason: error.message,
    });
  };

  /** The first submission of a payment. One that was refused before it was sent, and is nowhere, failed. */
  const begin = async (deposit: Deposit, chain: Chain, payment: SignedPayment): Promise<void> => {
    try {
      await submit(deposit.id, chain, payment);
    } catch (error) {
      if (error instanceof ChainUnavailable) return notSubmitted(deposit.network, error);
      if (!(error instanceof PaymentProblem)) throw error;
      if (await look(deposit, chain, payment)) await rows.markFailed(deposit.id, error.message);
    }
  };

  const drive = async (deposit: Deposit, payment: SignedPayment, mine: boolean): Promise<void> => {
    const until = performance.now() + waitMs;
    const chain = chainOf(deposit.network);
    try {
      if (mine && chain) await begin(deposit, chain, payment);
      for (let wait = FIRST_PAUSE_MS; ; wait = Math.min(wait * 1.6, PAUSE_MAX_MS)) {
        const current = await rows.find(deposit.id);
        if (!isUnderWay(current)) return;
        // Who waits for another gateway's payment looks at the row; whoever gave it to the chain looks there.
        if (mine && chain) {
          try {
            await look(current, chain, payment);
          } catch (error) {
            if (!(error instanceof ChainUnavailable)) throw error;
          }
          if (!isUnderWay(await rows.find(deposit.id))) return;
        }
        if (performance.now() + wait > until) return;
        await pause(wait, undefined, { signal }).catch(() => {});
        // The gateway ends: it is not known yet.
        if (signal.aborted) return;
      }
    } finally {
      if (mine && !signal.aborted) await rows.schedule(deposit.id, now() + FIRST_LOOK_MS).catch(() => {});
    }
  };

  const bringHome = (deposit: Deposit, payment: SignedPayment, mine: boolean): Promise<void> => {
    const running = driven.get(deposit.id);
    // Who made the row brings it home, also where others of this process wait for it already.
    if (running && !mine) return running;
    const driving = drive(deposit, payment, mine).finally(() => {
      if (driven.get(deposit.id) === driving) driven.delete(deposit.id);
    });
    driven.set(deposit.id, driving);
    return driving;
  };

  return {
    bringHome,
    async carryOn(deposit, payment) {
      const { id, network } = deposit;
      const chain = chainOf(network);
      if (chain === null || driven.has(id)) return;
      const open = await look(deposit, chain, payment);
      if (!open) return;
      try {
        await submit(id, chain, payment);
      } catch (error) {
        // It was given to the chain before, perhaps: only the chain can say that it will not come.
        if (error instanceof ChainUnavailable) notSubmitted(network, error);
        if (!(error instanceof PaymentProblem)) throw error;
      }
    },
  };
}
