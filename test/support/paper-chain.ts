import { GatewayError } from '#errors';
import { escrowOf, treasuryOf, type Ledger } from '#billing';
import { formatUsd, type MicroUsd } from '#billing/amounts';
import type { PaymentReceipt, Payments, PaymentAttempt } from '#payments';

/** The smallest payment that the paper chain accepts, in micro-USD. */
export const PAPER_LEAST = 100_000n;
export const PAPER_NETWORK = 'paper:1';

/** A payment of a test. */
export interface PaperPayment {
  readonly wallet: string;
  /** Micro-USD. Default PAPER_LEAST. */
  readonly amount?: bigint;
  /** Default: a new one. */
  readonly nonce?: string;
  /** The signature is forged or too old. */
  readonly fault?: 'forged' | 'expired';
}

/**
 * A simulated chain, for tests of how the routes handle payments. It implements `Payments` and moves money in the real
 * ledger. Other tests cover payments on real chains (signatures, settlement, crashes).
 */
export interface PaperChain {
  readonly payments: Payments;
  /** Sets the ledger for the credits. Call it before the first payment. */
  credit(ledger: Pick<Ledger, 'transfer'>): void;
  /** Nonces of payments that are reported as unsettled. Remove them to settle the payments. */
  readonly unsettled: Set<string>;
  /** Delays every payment until this promise resolves. null removes the delay. */
  hold(until: Promise<unknown> | null): void;
  /** Nonces of all payments that `take` was called with, in order. */
  readonly taken: string[];
  /** Nonces of the credited payments. */
  readonly credited: ReadonlySet<string>;
}

export const accountOf = (wallet: string): string => `paper:1:${wallet}`;

/** A payment in the form of x402's PaymentPayload. */
export const payWith = ({ wallet, amount = PAPER_LEAST, nonce = crypto.randomUUID(), fault }: PaperPayment) => ({
  x402Version: 2,
  accepted: {
    scheme: 'exact',
    network: PAPER_NETWORK,
    amount: String(amount),
    asset: 'paper',
    payTo: 'treasury',
    maxTimeoutSeconds: 60,
    extra: {},
  },
  payload: {
    signature: `signed-by-${wallet}-paper-canary`,
    wallet,
    amount: String(amount),
    nonce,
    ...(fault ? { fault } : {}),
  },
});

/** Encodes the value of the header PAYMENT-SIGNATURE. */
export const toHeader = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64');
export const fromHeader = (value: string | null): Record<string, unknown> =>
  JSON.parse(Buffer.from(value ?? '', 'base64').toString()) as Record<string, unknown>;

interface Signed {
  readonly wallet: string;
  readonly amount: string;
  readonly nonce: string;
  readonly fault?: PaperPayment['fault'];
}

export function createPaperChain(): PaperChain {
  let ledger: Pick<Ledger, 'transfer'> | null = null;
  const requests = new Map<string, string>();
  const receipts = new Map<string, PaymentReceipt>();
  const unsettled = new Set<string>();
  const taken: string[] = [];
  let held: Promise<unknown> | null = null;

  const verify = (slip: PaymentAttempt): Signed => {
    const signed = slip.payload['payload'] as Signed;
    slip.id = signed.nonce;
    if (signed.fault === 'forged')
      throw new GatewayError('payment_verification_failed', 'The signature is not of that wallet');
    if (signed.fault === 'expired') throw new GatewayError('payment_expired', 'The payment is too old');
    return signed;
  };

  return {
    unsettled,
    taken,
    get credited() {
      return new Set(receipts.keys());
    },
    credit(to) {
      ledger = to;
    },
    hold(until) {
      held = until;
    },
    payments: {
      open: true,
      async required({ error, resource, amount }) {
        const due: MicroUsd = amount > PAPER_LEAST ? amount : PAPER_LEAST;
        return { x402Version: 2, error, resource, accepts: [payWith({ wallet: '', amount: due }).accepted] };
      },
      async callerOf(caller, slip) {
        if (!caller.anonymous) return caller;
        const { nonce, wallet } = verify(slip);
        if (requests.has(nonce) && requests.get(nonce) !== slip.request)
          throw new GatewayError('payment_verification_failed', 'This payment was used for something else');
        return { account: accountOf(wallet), key: null, wallet: null, paying: caller.anonymous };
      },
      async take({ account, paying }, slip, needed) {
        const { nonce, wallet, amount } = verify(slip);
        taken.push(nonce);
        await held;
        const before = receipts.get(nonce);
        if (before) return before;
        if (BigInt(amount) < needed)
          throw new GatewayError('insufficient_payment', `The payment has to be ${formatUsd(needed)} USDC at least`);
        if (paying) requests.set(nonce, slip.request);
        if (unsettled.has(nonce))
          throw new GatewayError('payment_pending', 'The payment is not settled yet: repeat the request with it', {
            retryAfterS: 2,
          });
        const receipt = {
          success: true,
          transaction: `tx-${nonce}`,
          network: PAPER_NETWORK,
          payer: wallet,
          amount,
        } as const;
        receipts.set(nonce, receipt);
        await ledger!.transfer({
          id: `paper-${nonce}`,
          from: treasuryOf('paper'),
          to: escrowOf(account),
          amount: BigInt(amount),
          memo: '',
        });
        return receipt;
      },
    },
  };
}
