import { setTimeout as pause } from 'node:timers/promises';
import { ChainUnavailable, PaymentProblem, type Chain, type SignedPayment } from './chain.ts';
import type { Crediting } from './deposit-crediting.ts';
import type { Deposit, DepositRows } from './deposit-rows.ts';
import type { OnProblem } from './problem.ts';

export interface DeliveryOptions {
  readonly rows: DepositRows;
  readonly crediting: Pick<Crediting, 'settle' | 'lost'>;
  /** null if the chain is not open yet. */
  readonly chainOf: (network: string) => Chain | null;
  /** How long a request with a payment waits for the credit. */
  readonly waitMs: number;
  readonly onProblem: OnProblem;
  readonly now: () => number;
  readonly signal: AbortSignal;
}

/** The chain's side of deposits: submits signed payments and looks for them. */
export interface Delivery {
  /**
   * Waits until a payment is credited or `waitMs` is over. `mine`: this caller created the row, so it submits the
   * payment and looks for it on the chain. Other callers look only at the row.
   */
  bringHome(deposit: Deposit, payment: SignedPayment, mine: boolean): Promise<void>;
  /** Looks once for a payment that no request of this process waits for. Submits it again if it may still arrive. */
  carryOn(deposit: Deposit, payment: SignedPayment): Promise<void>;
}

const FIRST_PAUSE_MS = 40;
const PAUSE_MAX_MS = 1_000;
const TELL_AGAIN_MS = 60_000;
/** Time before the worker's first look at a payment. */
const FIRST_POLL_MS = 2_000;

const isUnderWay = (deposit: Deposit | null): deposit is Deposit =>
  deposit !== null && (deposit.state === 'received' || deposit.state === 'crediting');

export function createDelivery(options: DeliveryOptions): Delivery {
  const { rows, crediting, chainOf, waitMs, onProblem, now, signal } = options;
  const toldAt = new Map<string, number>();
  /** Payments that requests of this process wait for, by deposit id. */
  const driven = new Map<string, Promise<void>>();

  /** Looks for the payment on the chain and books the result. Resolves with whether the payment may still arrive. */
  const look = async (deposit: Deposit, chain: Chain, payment: SignedPayment): Promise<boolean> => {
    const observation = await chain.find(payment, deposit.transaction);
    if (observation.state === 'settled') await crediting.settle(deposit, observation.event);
    else if (observation.state === 'lost') await crediting.lost(deposit, observation.reason);
    return observation.state === 'open';
  };

  const submit = async (id: string, chain: Chain, payment: SignedPayment): Promise<void> => {
    const { transaction } = await chain.submit(payment);
    if (transaction !== null) await rows.noteTransaction(id, transaction);
  };

  /**
   * Tells the operator why payments cannot be submitted to a chain, because only the operator can refill a treasury
   * without gas. At most one message in TELL_AGAIN_MS for each network.
   */
  const notSubmitted = (network: string, error: ChainUnavailable): void => {
    if (now() - (toldAt.get(network) ?? 0) < TELL_AGAIN_MS) return;
    toldAt.set(network, now());
    onProblem('warn', 'a payment could not be sent to its chain; the gateway tries again', {
      network,
      reason: error.message,
    });
  };

  /**
   * Submits a payment for the first time. Marks it as failed if it was refused before it was sent and is not on the
   * chain.
   */
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
        // Only the caller that submitted the payment looks at the chain. The others look at the row.
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
        // The gateway stops, so the outcome is not known yet.
        if (signal.aborted) return;
      }
    } finally {
      if (mine && !signal.aborted) await rows.schedule(deposit.id, now() + FIRST_POLL_MS).catch(() => {});
    }
  };

  const bringHome = (deposit: Deposit, payment: SignedPayment, mine: boolean): Promise<void> => {
    const running = driven.get(deposit.id);
    // The caller that created the row does the work, even if others of this process already wait.
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
        // The payment may have been submitted before, so a refusal here is no failure. Only the chain can decide that
        // it will not arrive.
        if (error instanceof ChainUnavailable) notSubmitted(network, error);
        if (!(error instanceof PaymentProblem)) throw error;
      }
    },
  };
}
