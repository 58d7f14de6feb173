import { getAddress, isAddress, toHex, zeroAddress, type Hex, domainSeparator, zeroHash } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { ChainUnavailable, PaymentProblem, type Chain, type ChainSetup, type SignedPayment } from '../chain.ts';
import {
  createEvmAsset,
  transferCall,
  type AssetDomain,
  type Authorization,
  NoSuchAsset,
  type EvmAsset,
} from './asset.ts';
import { createFacilitatorClient, type FacilitatorClient } from '../ask-json.ts';
import { createEvmIncoming } from './incoming.ts';
import { createRangeReader } from './log-search.ts';
import { evmRequirements, readEvmPayment, signedAuthorization } from './payment.ts';
import { readSignedPayout, signerOf, signPayout, receiverFault } from './payout.ts';
import { Reverted, createEvmNode, type EvmNode, plainWords } from './rpc.ts';
import { createEvmSightings } from './sightings.ts';
import { createEvmTransactions } from './transactions.ts';
import { VERIFY_GAS_MAX, checkTime, createEvmVerifier, payerAccount } from './verify.ts';
import { evmHeads } from './blocks.ts';

/**
 * A chain of the EVM family whose asset supports EIP-3009, such as USDC. Sends no request yet. Throws Error for an
 * invalid setup.
 */
export function createEvmChain(setup: ChainSetup): Chain {
  const { network, timeoutMs, finality, now } = setup;
  const { domain, asset: assetAddress } = domainOf(setup);
  const { chainId } = domain;
  if (setup.treasuryKey.length !== 32)
    throw new Error(`The treasury key of ${network} must be 32 bytes, not ${setup.treasuryKey.length}`);
  const account = privateKeyToAccount(toHex(setup.treasuryKey));
  const { name: assetName, version: assetVersion } = domain;
  const terms = { network, asset: assetAddress, treasury: account.address, assetName, assetVersion };

  const node = createEvmNode({ rpcUrl: setup.rpcUrl, timeoutMs });
  const asset = createEvmAsset(node, assetAddress);
  const sighting = {
    node,
    asset,
    treasury: account.address.toLowerCase() as Hex,
    finality,
    reader: createRangeReader(node),
  };
  const sightings = createEvmSightings(sighting);
  const incoming = createEvmIncoming({ ...sighting, network, snapshots: setup.snapshots ?? null });
  const transactions = createEvmTransactions({ node, account, chainId, now });
  const verifier = createEvmVerifier(node, asset);
  const closed = new AbortController();
  const facilitator =
    setup.facilitator === 'in-process'
      ? null
      : createFacilitatorClient({ url: setup.facilitator, timeoutMs, signal: closed.signal });

  /** Broadcasts an authorization unless it is already used. Throws Reverted if it would not succeed. */
  async function carryOut(authorization: Authorization, signature: Hex): Promise<Hex | null> {
    const { from, nonce } = authorization;
    const key = `${from}/${nonce}`;
    const waiting = await transactions.waiting(key);
    if (waiting !== null || (await asset.authorizationState(from, nonce, 'latest'))) return waiting;
    const call = { to: assetAddress, data: transferCall(authorization, signature) };
    await node.call({ ...call, from: account.address, gas: VERIFY_GAS_MAX }, 'latest');
    const gas = ((await node.estimateGas({ ...call, from: account.address })) * 5n) / 4n;
    // The treasury pays the gas, so a contract wallet may not use more than this.
    if (gas > VERIFY_GAS_MAX) throw new Reverted(`it takes ${gas} gas, more than ${VERIFY_GAS_MAX}`);
    return transactions.send(key, { ...call, gas });
  }

  return {
    network,
    asset: assetAddress,
    treasury: account.address,
    paymentsNameAccounts: false,

    open: () => checkNode({ node, asset, network, address: assetAddress, domain, finality }),
    requirements: async (amount) => evmRequirements(terms, amount),
    read: (payment) => readEvmPayment(terms, payment, now()),
    async verify(payment) {
      const { authorization, signature } = signedAuthorization(payment.payload);
      checkTime(authorization, now());
      // The gateway verifies with its own node even if a facilitator settles. The facilitator must not see a payment
      // before a row says who owns it.
      await verifier.verify(payment, authorization, signature);
      return { account: await payerAccount(domain, authorization, signature) };
    },
    async submit(payment) {
      const { authorization, signature } = signedAuthorization(payment.payload);
      if (facilitator) {
        if (await asset.authorizationState(authorization.from, authorization.nonce, 'latest'))
          return { transaction: null };
        return { transaction: await settleElsewhere(facilitator, payment) };
      }
      try {
        return { transaction: await carryOut(authorization, signature) };
      } catch (error) {
        if (!(error instanceof Reverted)) throw error;
        const expired = /expired|InvalidAuthorizationTime/i.test(error.message);
        throw new PaymentProblem(
          expired ? 'payment_expired' : 'payment_verification_failed',
          `The payment would not succeed: ${error.message}`,
          {
            cause: error,
          },
        );
      }
    },
    find: (payment, transaction) =>
      sightings.ofPayment(signedAuthorization(payment.payload).authorization, transaction),
    incoming: incoming.page,
    balanceAt: (cursor) => incoming.balanceAt(cursor),

    addressFault: (address) =>
      receiverFault(address, [
        [account.address, 'the treasury itself'],
        [assetAddress, 'the contract of the asset'],
        [zeroAddress, 'the zero address'],
      ]),
    sign: (payout, previous) => signPayout({ account, domain, network, now }, payout, previous),
    async send(payout, signed) {
      const { authorization, signature } = readSignedPayout(terms, payout, signed);
      try {
        return { transaction: await carryOut(authorization, signature) };
      } catch (error) {
        // Nothing was sent, and the payout may succeed later, for example when the treasury holds enough again.
        if (error instanceof Reverted)
          throw new ChainUnavailable(`The payout ${payout.id} would not succeed now: ${error.message}`, {
            cause: error,
          });
        throw error;
      }
    },
    async findPayout(payout, signed, transaction) {
      const { authorization, signedAt } = readSignedPayout(terms, payout, signed);
      return sightings.ofPayout(authorization, signedAt, transaction);
    },
    payerOf: signerOf,
    close() {
      node.close();
      closed.abort();
    },
  };
}

/** The EIP-712 domain of the asset, checked as far as possible without a node. */
function domainOf({ network, asset, assetName, assetVersion }: ChainSetup): {
  readonly domain: AssetDomain;
  readonly asset: Hex;
} {
  const reference = /^eip155:([1-9]\d{0,14})$/.exec(network)?.[1];
  if (reference === undefined)
    throw new Error(`${JSON.stringify(network)} is not the CAIP-2 name of an EVM chain, such as eip155:8453`);
  if (!isAddress(asset, { strict: false }))
    throw new Error(`The asset of ${network} must be 20 bytes of hex after 0x, not ${JSON.stringify(asset)}`);
  if (!assetName || !assetVersion)
    throw new Error(
      `The asset of ${network} needs the name and the version of its EIP-712 domain: of USDC on Base "USD Coin" and "2"`,
    );
  const address = getAddress(asset);
  return {
    asset: address,
    domain: { name: assetName, version: assetVersion, chainId: Number(reference), verifyingContract: address },
  };
}

interface CheckNodeOptions extends Pick<ChainSetup, 'network' | 'finality'> {
  readonly node: EvmNode;
  readonly asset: EvmAsset;
  readonly address: Hex;
  readonly domain: AssetDomain;
}

/**
 * Checks a node and its asset. Rejects with Error if the node serves another chain, or if the asset cannot be used for
 * payments.
 */
async function checkNode({ node, asset, network, address, domain, finality }: CheckNodeOptions): Promise<void> {
  const real = await node.chainId();
  if (real !== BigInt(domain.chainId))
    throw new Error(`The node for ${network} belongs to chain eip155:${real}. Set the address of a node of ${network}`);
  if ((await node.code(address, 'latest')) === '0x')
    throw new Error(`There is no contract at ${address} on ${network}: set the address of the asset`);
  const { latest } = await evmHeads(node, finality);
  if (latest.baseFee === null)
    throw new Error(`${network} has no base fee (EIP-1559), but the transactions of this gateway need one`);
  const decimals = await answer(asset.decimals(), 'decimals');
  if (decimals !== 6) throw new Error(`${address} on ${network} has ${decimals} decimals; micro-USD are 6`);
  await answer(asset.authorizationState(zeroAddress, zeroHash, 'latest'), 'authorizationState (EIP-3009)');
  const separator = await answer(asset.domainSeparator(), 'DOMAIN_SEPARATOR');
  if (separator !== domainSeparator({ domain }))
    throw new Error(
      `The EIP-712 domain of ${address} on ${network} is not of name ${JSON.stringify(domain.name)} and version ${JSON.stringify(domain.version)}: every signature would be refused. Set the name and version that the asset signs with`,
    );

  async function answer<T>(answering: Promise<T>, what: string): Promise<T> {
    try {
      return await answering;
    } catch (error) {
      if (!(error instanceof NoSuchAsset)) throw error;
      throw new Error(`${address} on ${network} does not answer ${what}: it is not USDC, nor a token like it`, {
        cause: error,
      });
    }
  }
}

/**
 * Submits a payment to an external facilitator. Its answer is never proof of payment. It only gets payments that are
 * already stored, because it could submit one in its own name. Resolves with the transaction id in its answer. Rejects
 * with PaymentProblem only if it certainly sent nothing.
 */
async function settleElsewhere(facilitator: FacilitatorClient, payment: SignedPayment): Promise<Hex | null> {
  const { success, transaction, errorReason, errorMessage } = await facilitator.settle(payment);
  const hash =
    typeof transaction === 'string' && /^0x[0-9a-f]{64}$/i.test(transaction)
      ? (transaction.toLowerCase() as Hex)
      : null;
  if (success || hash) return hash;
  // Reasons of x402 with these prefixes mean that nothing was sent. Any other reason may come after a broadcast.
  if (typeof errorReason === 'string' && /^(?:invalid|insufficient)_/.test(errorReason))
    throw refused(errorReason, errorMessage);
  throw new ChainUnavailable(
    `The facilitator did not settle the payment: ${plainWords(errorReason) || 'it gave no reason'}`,
  );
}

function refused(reason: unknown, message: unknown): PaymentProblem {
  const words = [plainWords(reason), plainWords(message)].filter(Boolean).join(': ') || 'no reason given';
  const code = /expired|valid_before/.test(words) ? 'payment_expired' : 'payment_verification_failed';
  return new PaymentProblem(code, `The facilitator refuses the payment: ${words}`);
}
