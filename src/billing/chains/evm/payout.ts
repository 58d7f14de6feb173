import { getAddress, keccak256, stringToBytes, type Hex, type PrivateKeyAccount } from 'viem';
import { PayoutProblem, PayoutUnreadable, type ChainPayout, type SignedPayout } from '../chain.ts';
import { AUTHORIZATION_TYPES, type AssetDomain, type Authorization } from './asset.ts';
import { authorizationText, signedAuthorization, type EvmTerms } from './payment.ts';

/**
 * 2100-01-01. The nonce makes a payout happen only once, so it needs no earlier end. An earlier end could stop a payout
 * that is owed, and the gateway would have to wait for that end before it is certain.
 */
const VALID_BEFORE = 4_102_444_800n;

interface PayoutSigner {
  readonly account: PrivateKeyAccount;
  readonly domain: AssetDomain;
  readonly network: string;
  readonly now: () => number;
}

/** A signed payout, read from its text. `signedAt` is in epoch seconds: the payout is not on the chain before. */
interface ReadPayout {
  readonly authorization: Authorization;
  readonly signature: Hex;
  readonly signedAt: bigint;
}

/**
 * The nonce of a withdrawal. It is always the same, so the token executes the withdrawal only once, even if it is
 * signed or submitted again.
 */
export function payoutNonce(id: string): Hex {
  return keccak256(stringToBytes(`withdrawal:${id}`));
}

/**
 * Signs a payout as an EIP-3009 authorization of the treasury. `text` is sufficient to submit it. A payout whose nonce
 * was used without paying it cannot be signed again. Only the treasury's own key can use the nonce, either to cancel
 * the payout (for example for a receiver that cannot be paid) or to spend the nonce otherwise. Then PayoutProblem is
 * thrown and the money is given back.
 */
export async function signPayout(
  signer: PayoutSigner,
  payout: ChainPayout,
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

/** Reads a signed payout. Throws PayoutUnreadable if it is not the signature of `payout`. */
export function readSignedPayout(terms: EvmTerms, payout: ChainPayout, signed: SignedPayout): ReadPayout {
  const { fields, authorization, signature } = readAuthorization(payout, signed);
  const signedAt = fields['signedAt'];
  const wrong = (what: string): Error =>
    new PayoutUnreadable(`The signed authorization of withdrawal ${payout.id} has another ${what}, so nothing is sent`);
  if (fields['network'] !== terms.network) throw wrong('network');
  if (typeof fields['asset'] !== 'string' || fields['asset'].toLowerCase() !== terms.asset.toLowerCase())
    throw wrong('asset');
  if (authorization.from !== terms.treasury.toLowerCase()) throw wrong('treasury');
  if (authorization.to !== payout.to.toLowerCase()) throw wrong('receiver');
  if (authorization.value !== payout.amount) throw wrong('amount');
  if (authorization.nonce !== payoutNonce(payout.id)) throw wrong('withdrawal');
  if (typeof signedAt !== 'number' || !Number.isSafeInteger(signedAt)) throw wrong('shape');
  return { authorization, signature, signedAt: BigInt(signedAt) };
}

function readAuthorization({ id }: ChainPayout, { text }: SignedPayout) {
  try {
    const fields = JSON.parse(text) as Readonly<Record<string, unknown>>;
    return { fields, ...signedAuthorization({ authorization: fields, signature: fields['signature'] }) };
  } catch (cause) {
    throw new PayoutUnreadable(`The signed authorization of withdrawal ${id} cannot be read, so nothing is sent`, {
      cause,
    });
  }
}

/** The address that signed a payout. Throws PayoutUnreadable. */
export function signerOf({ text }: SignedPayout): Hex {
  try {
    return getAddress((JSON.parse(text) as { readonly from: string }).from);
  } catch (cause) {
    throw new PayoutUnreadable('A signed authorization cannot be read', { cause });
  }
}

/**
 * The reason why an address cannot get a payout; null if it can. `forbidden`: addresses that are not paid, each with
 * its description.
 */
export function receiverFault(address: string, forbidden: readonly (readonly [Hex, string])[]): string | null {
  if (!/^0x[0-9a-fA-F]{40}$/.test(address)) return 'An EVM address is 20 bytes of hex after 0x';
  const digits = address.slice(2);
  const mixed = digits !== digits.toLowerCase() && digits !== digits.toUpperCase();
  const right = getAddress(address.toLowerCase());
  if (mixed && address !== right)
    return 'The capital letters of the address do not match its checksum (EIP-55), so a digit is wrong';
  const why = forbidden.find(([one]) => one.toLowerCase() === address.toLowerCase())?.[1];
  return why === undefined ? null : `${right} is ${why}, which is not paid`;
}
