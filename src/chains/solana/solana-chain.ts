import type { Address } from '@solana/kit';
import { MICRO_USD_MAX } from '#billing';
import {
  PaymentProblem,
  type Chain,
  type ChainSetup,
  type PaymentPayload,
  type PaymentRequirements,
  type SignedPayment,
} from '../chain.ts';
import { createFacilitatorClient } from '../facilitator-client.ts';
import { addressOf, tokenAccountAddress, treasuryKeyOf } from './address.ts';
import { MEMO_BYTES_MAX, readExact, withFeeSignature, type ExactTerms } from './exact.ts';
import { createExpiry } from './expiry.ts';
import { createOwnFacilitator, createRemoteFacilitator } from './facilitator.ts';
import { createIncoming } from './incoming.ts';
import { createSolanaNode } from './node.ts';
import { openTreasury } from './open.ts';
import { createPayouts } from './payout.ts';
import { createPaymentSight, type Sought } from './sight.ts';

/** A blockhash is valid for 150 blocks, about a minute. */
const TIMEOUT_SECONDS = 60;

/**
 * Solana: x402 `exact` payments in an SPL token of 6 decimals, and payouts from the same treasury. The transaction
 * of a payment is signed by its payer and co-signed by whoever pays the fee; final is what the node calls
 * finalized. Throws for a key, an address or a setting that cannot be right.
 */
export function createSolanaChain(setup: ChainSetup): Chain {
  const { network, timeoutMs, facilitator: where } = setup;
  const key = treasuryKeyOf(setup.treasuryKey);
  const treasury = key.address;
  const asset = addressOf(setup.asset);
  if (asset === null)
    throw new Error(
      `the asset on ${network} must be the address of a token's mint in base58, not ${JSON.stringify(setup.asset.slice(0, 80))}`,
    );
  if (!/^solana:[1-9A-HJ-NP-Za-km-z]{32}$/.test(network))
    throw new Error(`a network of Solana is solana:<first 32 characters of its genesis hash>, not ${network}`);
  if (setup.finality !== null)
    throw new Error(`finality in blocks is for EVM networks: on ${network} final is what the node calls finalized`);

  const closed = new AbortController();
  const node = createSolanaNode(setup.rpcUrl, timeoutMs, closed.signal);
  const treasuryAccount = tokenAccountAddress(treasury, asset);
  const expiry = createExpiry(node, network);
  const facilitator =
    where === 'in-process'
      ? createOwnFacilitator(key, node)
      : createRemoteFacilitator(
          createFacilitatorClient({ url: where, timeoutMs, signal: closed.signal }),
          network,
          treasury,
          node,
        );
  const sight = createPaymentSight(node, expiry, treasuryAccount, asset);
  const incoming = createIncoming(node, network, treasuryAccount, asset);
  const payouts = createPayouts(node, key, asset, expiry, setup.opensAccounts ?? false);

  function termsOf({ extra, amount }: PaymentRequirements): ExactTerms {
    const feePayer = addressOf(extra['feePayer']);
    if (feePayer === null)
      throw invalid("accepted.extra.feePayer must be the fee payer's address, as the requirements say");
    const memo = extra['memo'] ?? null;
    if (memo !== null && (typeof memo !== 'string' || Buffer.byteLength(memo) > MEMO_BYTES_MAX))
      throw invalid(
        `accepted.extra.memo must be the text that the requirements say, of at most ${MEMO_BYTES_MAX} bytes`,
      );
    return {
      asset: asset as Address,
      treasury,
      treasuryAccount,
      feePayer,
      amount: BigInt(amount),
      memo: memo === '' ? null : memo,
    };
  }

  /** Of a payment that is to be taken now. */
  function termsNow(requirements: PaymentRequirements): ExactTerms {
    const terms = termsOf(requirements);
    if (where === 'in-process' && terms.feePayer !== treasury)
      throw invalid(`accepted.extra.feePayer must be ${treasury}, as the requirements say`);
    return terms;
  }

  function read({ x402Version, accepted, payload }: PaymentPayload): SignedPayment {
    if (x402Version !== 2) throw invalid('x402Version must be 2');
    if (!isObject(accepted) || !isObject(accepted.extra))
      throw invalid('accepted must be the requirements that are paid, with their extra');
    if (!isObject(payload)) throw invalid('payload must be {transaction}');
    const wrong = (field: string, value: string) =>
      new PaymentProblem('payment_verification_failed', `accepted.${field} must be ${value}, as the requirements say`);
    if (accepted.scheme !== 'exact') throw wrong('scheme', 'exact');
    if (accepted.network !== network) throw wrong('network', network);
    if (accepted.asset !== asset) throw wrong('asset', `${asset}`);
    if (accepted.payTo !== treasury) throw wrong('payTo', treasury);
    if (
      typeof accepted.amount !== 'string' ||
      !/^[1-9]\d{0,19}$/.test(accepted.amount) ||
      BigInt(accepted.amount) > MICRO_USD_MAX
    )
      throw invalid(`accepted.amount must be micro-USD in decimal digits, 1 to ${MICRO_USD_MAX}`);
    const terms = termsNow(accepted);
    const { payer, messageHash, memo } = readExact(payload['transaction'], terms);
    return {
      id: `${network}/${messageHash}`,
      network,
      payerAccount: `solana:${payer}`,
      payer,
      amount: terms.amount,
      requirements: accepted,
      ...(memo === null ? {} : { memo }),
      payload: { transaction: payload['transaction'] },
      // How far back a node has to remember, to be believed that it never came.
      readAt: setup.now(),
    };
  }

  /**
   * What to look for. The treasury's signature is made for what would be co-signed anyway: a node that is asked for
   * it could send it.
   */
  function soughtOf({ payload, requirements, readAt }: SignedPayment): Sought {
    const terms = termsOf(requirements);
    const exact = readExact(payload['transaction'], terms);
    const signature =
      terms.feePayer === treasury ? withFeeSignature(exact, treasury, key.sign(exact.message)).id : null;
    const { messageHash, blockhash, source } = exact;
    return { messageHash, blockhash, source, signature, readAt: readAt ?? null };
  }

  return {
    network,
    asset,
    treasury,
    paymentsNameAccounts: true,

    async open() {
      await openTreasury({ node, network, asset, key, treasuryAccount, timeoutMs });
      await facilitator.feePayer();
    },

    async requirements(amount, account) {
      const feePayer = await facilitator.feePayer();
      return {
        scheme: 'exact',
        network,
        asset,
        amount: String(amount),
        payTo: treasury,
        maxTimeoutSeconds: TIMEOUT_SECONDS,
        extra: { feePayer, paymentFlow: 'upfront', ...(account === null ? {} : { memo: account }) },
      };
    },

    read,

    async verify(payment) {
      readExact(payment.payload['transaction'], termsNow(payment.requirements));
      await facilitator.verify(payment);
      return { account: payment.payerAccount };
    },

    submit: async (payment) => ({ transaction: await facilitator.submit(payment, termsNow(payment.requirements)) }),
    find: async (payment, transaction) => sight.find(soughtOf(payment), transaction),

    incoming: incoming.page,
    balanceAt: incoming.balanceAt,

    addressFault: payouts.addressFault,
    sign: payouts.sign,
    send: payouts.send,
    findPayout: (payout, signed) => payouts.find(payout, signed),

    close: () => closed.abort(),
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalid(message: string): PaymentProblem {
  return new PaymentProblem('invalid_request', message);
}
