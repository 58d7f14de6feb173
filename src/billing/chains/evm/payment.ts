import { getAddress, isAddress, zeroAddress } from 'viem';
import type { Hex } from 'viem';
import { MICRO_USD_MAX, type MicroUsd } from '#billing';
import { PaymentProblem, type PaymentPayload, type PaymentRequirements, type SignedPayment } from '../chain.ts';
import type { Authorization } from './asset.ts';

/**
 * The longest time between the signing and the end of an authorization. A payment cannot be given up before this time
 * is over, and its logs are searched that far back.
 */
export const VALID_SECONDS_MAX = 86_400n;
/** Signatures of passkey and multi-signature wallets have up to about 1 KB. */
const SIGNATURE_BYTES_MAX = 4096;
/** The end of every ERC-6492 signature. */
const ERC_6492_MAGIC = '6492'.repeat(16);
const TIMEOUT_SECONDS = 300;
const TEXT_MAX = 80;

/** The terms of a chain for its payers. */
export interface EvmTerms {
  readonly network: string;
  /** In the mixed case of EIP-55. */
  readonly asset: Hex;
  readonly treasury: Hex;
  readonly assetName: string;
  readonly assetVersion: string;
}

export function evmRequirements(terms: EvmTerms, amount: MicroUsd): PaymentRequirements {
  return {
    scheme: 'exact',
    network: terms.network,
    asset: terms.asset,
    amount: amount.toString(),
    payTo: terms.treasury,
    maxTimeoutSeconds: TIMEOUT_SECONDS,
    // Clients sign EIP-3009 by default. Resource servers find `paymentFlow` by the key `assetTransferMethod`, so it is
    // written too.
    extra: {
      name: terms.assetName,
      version: terms.assetVersion,
      assetTransferMethod: 'eip3009',
      paymentFlow: 'upfront',
    },
  };
}

/** The id of an EVM payment, the same for every sender: a token executes a nonce of an account only once. */
export function evmPaymentId(network: string, asset: Hex, from: Hex, nonce: Hex): string {
  return `${network}/${asset.toLowerCase()}/${from.toLowerCase()}/${nonce.toLowerCase()}`;
}

/**
 * Reads an x402 v2 payment of the scheme `exact` with EIP-3009. All others are refused: Permit2, `upto`, ERC-6492.
 * `now` is in epoch milliseconds. Throws PaymentProblem.
 */
export function readEvmPayment(terms: EvmTerms, payment: PaymentPayload, now: number): SignedPayment {
  if (payment.x402Version !== 2) throw malformed(`x402Version must be 2, not ${printed(payment.x402Version)}`);
  const accepted = members(payment.accepted, 'accepted');
  same(accepted['scheme'], 'exact', 'accepted.scheme');
  same(accepted['network'], terms.network, 'accepted.network');
  sameAddress(accepted['asset'], terms.asset, 'accepted.asset');
  sameAddress(accepted['payTo'], terms.treasury, 'accepted.payTo');
  const amount = decimal(accepted['amount'], 'accepted.amount');
  if (amount === 0n || amount > MICRO_USD_MAX)
    throw malformed(`accepted.amount must be between 1 and ${MICRO_USD_MAX}, not ${amount}`);
  const extra = members(accepted['extra'], 'accepted.extra');
  same(extra['name'], terms.assetName, 'accepted.extra.name');
  same(extra['version'], terms.assetVersion, 'accepted.extra.version');
  if (extra['assetTransferMethod'] !== undefined)
    same(extra['assetTransferMethod'], 'eip3009', 'accepted.extra.assetTransferMethod');

  const payload = members(payment.payload, 'payload');
  if (Object.hasOwn(payload, 'permit2Authorization'))
    throw malformed(
      'payload.permit2Authorization: Permit2 is not supported. Sign an EIP-3009 authorization (payload.authorization)',
    );
  const { authorization, signature } = signedAuthorization(payload);
  sameAddress(authorization.to, terms.treasury, 'payload.authorization.to');
  if (authorization.value < amount)
    throw new PaymentProblem(
      'insufficient_payment',
      `payload.authorization.value is ${authorization.value}; the accepted amount is ${amount}`,
    );
  if (authorization.value > amount)
    throw malformed(`payload.authorization.value must be the accepted amount ${amount}, not ${authorization.value}`);
  if (authorization.from === zeroAddress)
    throw malformed('payload.authorization.from is the zero address, which cannot sign');
  if (authorization.from === terms.treasury.toLowerCase())
    throw malformed('payload.authorization.from is the recipient itself, so no money would move');
  if (authorization.validBefore <= authorization.validAfter)
    throw malformed('payload.authorization.validBefore must be later than validAfter');
  const latest = BigInt(Math.floor(now / 1000)) + VALID_SECONDS_MAX;
  if (authorization.validBefore > latest)
    throw malformed(
      `payload.authorization.validBefore must be at most ${VALID_SECONDS_MAX} seconds away, not ${authorization.validBefore}`,
    );

  const { from, nonce } = authorization;
  return {
    id: evmPaymentId(terms.network, terms.asset, from, nonce),
    network: terms.network,
    payerAccount: `eip155:${from}`,
    payer: getAddress(from),
    amount,
    requirements: evmRequirements(terms, amount),
    payload: { authorization: authorizationText(authorization), signature },
  };
}

/** The authorization and the signature of a payload. Throws PaymentProblem if they are malformed. */
export function signedAuthorization(payload: Readonly<Record<string, unknown>>): {
  readonly authorization: Authorization;
  readonly signature: Hex;
} {
  const signature = payload['signature'];
  if (
    typeof signature !== 'string' ||
    signature.length < 132 ||
    signature.length % 2 !== 0 ||
    !isHex(signature, 2 * SIGNATURE_BYTES_MAX)
  )
    throw malformed(`payload.signature must be 65 to ${SIGNATURE_BYTES_MAX} bytes of hex after 0x`);
  if (signature.toLowerCase().endsWith(ERC_6492_MAGIC))
    throw malformed(
      'payload.signature is of a contract wallet that is not deployed yet (ERC-6492), which is not supported. Deploy the wallet, and sign as it does then (ERC-1271)',
    );
  const fields = members(payload['authorization'], 'payload.authorization');
  const at = (name: string): string => `payload.authorization.${name}`;
  const nonce = fields['nonce'];
  if (typeof nonce !== 'string' || nonce.length !== 66 || !isHex(nonce, 64))
    throw malformed(`${at('nonce')} must be 32 bytes of hex after 0x, not ${printed(nonce)}`);
  return {
    authorization: {
      from: address(fields['from'], at('from')),
      to: address(fields['to'], at('to')),
      value: decimal(fields['value'], at('value')),
      validAfter: decimal(fields['validAfter'], at('validAfter')),
      validBefore: decimal(fields['validBefore'], at('validBefore')),
      nonce: nonce.toLowerCase() as Hex,
    },
    signature: signature.toLowerCase() as Hex,
  };
}

export function authorizationText(authorization: Authorization): Readonly<Record<string, string>> {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  return {
    from: getAddress(from),
    to: getAddress(to),
    value: `${value}`,
    validAfter: `${validAfter}`,
    validBefore: `${validBefore}`,
    nonce,
  };
}

function same(value: unknown, expected: string, what: string): void {
  if (value !== expected) throw other(value, `${what} must be ${JSON.stringify(expected)}, not ${printed(value)}`);
}

function sameAddress(value: unknown, expected: Hex, what: string): void {
  if (typeof value !== 'string' || value.toLowerCase() !== expected.toLowerCase())
    throw other(value, `${what} must be ${expected}, not ${printed(value)}`);
}

/** A wrong text is a payment by other terms; any other type is malformed. */
const other = (value: unknown, message: string): PaymentProblem =>
  typeof value === 'string' ? new PaymentProblem('payment_verification_failed', message) : malformed(message);

/** The case is ignored, because many clients lose it. */
function address(value: unknown, what: string): Hex {
  if (typeof value !== 'string' || !isAddress(value, { strict: false }))
    throw malformed(`${what} must be 20 bytes of hex after 0x, not ${printed(value)}`);
  return value.toLowerCase() as Hex;
}

function decimal(value: unknown, what: string): bigint {
  // 20 digits are enough for 64 bits.
  if (typeof value !== 'string' || !/^(?:0|[1-9]\d{0,19})$/.test(value))
    throw malformed(`${what} must be a whole number as a string of digits, not ${printed(value)}`);
  return BigInt(value);
}

function members(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw malformed(`${what} must be an object, not ${printed(value)}`);
  return value as Readonly<Record<string, unknown>>;
}

const isHex = (text: string, digitsMax: number): boolean => text.length <= 2 + digitsMax && /^0x[0-9a-f]*$/i.test(text);

function printed(value: unknown): string {
  if (value === undefined) return 'missing';
  if (typeof value === 'string')
    return JSON.stringify(value.length > TEXT_MAX ? `${value.slice(0, TEXT_MAX)}…` : value);
  return typeof value === 'number' || typeof value === 'boolean' || value === null
    ? String(value)
    : Array.isArray(value)
      ? 'a list'
      : `an ${typeof value}`;
}

const malformed = (message: string): PaymentProblem => new PaymentProblem('invalid_request', message);
