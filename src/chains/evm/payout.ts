import { getAddress, keccak256, stringToBytes } from 'viem';
import type { Hex, PrivateKeyAccount } from 'viem';
import { PayoutProblem, type Payout, type SignedPayout } from '../chain.ts';
import { AUTHORIZATION_TYPES, type AssetDomain, type Authorization } from './asset.ts';
import { authorizationText, signedAuthorization, type EvmTerms } from './payment.ts';

/**
 * 2100-01-01. What makes a payout happen once is its nonce, which never changes; an end would only make a payout
 * that is owed stop short, and would have to be waited for before it is certain that it does.
 */
const VALID_BEFORE = 4_102_444_800n;

interface PayoutSigner {
  readonly account: PrivateKeyAccount;
  readonly domain: AssetDomain;
  readonly network: string;
  readonly now: () => number;
}

/** A payout that was signed, as its text says it. `signedAt` in epoch seconds: it is not on the chain before. */
interface ReadPayout {
  readonly authorization: Authorization;
  readonly signature: Hex;
  readonly signedAt: bigint;
}

/** The nonce of a withdrawal: whoever signs it again, and whoever submits it, the token carries it out once. */
export function payoutNonce(id: string): Hex {
  return keccak256(stringToBytes(`withdrawal:${id}`));
}

/**
 * Signs a payout as an EIP-3009 authorization of the treasury; `text` has all that anybody needs to submit it. It
 * cannot be signed anew once its nonce is gone: that takes the treasury's own key, which cancelled it (to free what
 * a receiver cannot be paid, say) or spent it elsewhere. It can never pay then, and the money goes back.
 */
export async function signPayout(
  signer: PayoutSigner,
  payout: Payout,
  previous: SignedPayout | null,
): Promise<SignedPayout> {
  const { account, domain, network, now } = signer;
  if (previous)
    throw new PayoutProblem(`Its nonce on ${network} was used up by the treasury's own key without paying it`);
  const authorization: Authorization = {
    from: account.address.toLowerCase() as Hex,
    to: payout.to.toLowerCase() as Hex,
    value: payout.amount,
    validAfter: 0n,
    validBefore: VALID_BEFORE,
    nonce: payoutNonce(payout.id),
  };
  const signature = await account.signTypedData({
    domain,
    types: AUTHORIZATION_TYPES,
    primaryType: 'TransferWithAuthorization',
    message: authorization,
  });
  const signedAt = Math.floor(now() / 1000);
  const text = JSON.stringify({
    ...authorizationText(authorization),
    signature,
    network,
    asset: getAddress(domain.verifyingContract),
    signedAt,
  });
  return { text, transaction: null };
}

/** Reads what was signed, and throws a plain error where it is not this payout. */
export function readSignedPayout(terms: EvmTerms, payout: Payout, signed: SignedPayout): ReadPayout {
  const given = JSON.parse(signed.text) as Readonly<Record<string, unknown>>;
  const { authorization, signature } = signedAuthorization({ authorization: given, signature: given['signature'] });
  const signedAt = given['signedAt'];
  const wrong = (what: string): Error =>
    new Error(`What was signed for withdrawal ${payout.id} is of another ${what}: nothing is sent`);
  if (given['network'] !== terms.network) throw wrong('network');
  if (typeof given['asset'] !== 'string' || given['asset'].toLowerCase() !== terms.asset.toLowerCase())
    throw wrong('asset');
  if (authorization.from !== terms.treasury.toLowerCase()) throw wrong('treasury');
  if (authorization.to !== payout.to.toLowerCase()) throw wrong('receiver');
  if (authorization.value !== payout.amount) throw wrong('amount');
  if (authorization.nonce !== payoutNonce(payout.id)) throw wrong('withdrawal');
  if (typeof signedAt !== 'number' || !Number.isSafeInteger(signedAt)) throw wrong('shape');
  return { authorization, signature, signedAt: BigInt(signedAt) };
}
