import { createSiweMessage } from 'viem/siwe';
import { DOMAIN, encodeEnvelope, inSeconds, type TestWallet } from '../../support/wallets.ts';
import type { Value } from './envelopes.ts';

/** The flat fields of the extension `sign-in-with-x` of x402, without the signature. */
export interface Fields {
  readonly domain: string;
  readonly address: string;
  readonly statement?: string;
  readonly uri: string;
  readonly version: '1';
  readonly chainId: string;
  readonly type?: string;
  readonly signatureScheme?: string;
  readonly nonce?: string;
  readonly issuedAt?: string;
  readonly expirationTime?: string;
  readonly notBefore?: string;
  readonly requestId?: string;
  readonly resources?: readonly string[];
}

export function fieldsOf(wallet: TestWallet, changed: Partial<Fields> = {}): Fields {
  return {
    domain: DOMAIN,
    address: wallet.address,
    uri: `https://${DOMAIN}/api/v1`,
    version: '1',
    chainId: wallet.chainId,
    type: wallet.namespace === 'solana' ? 'ed25519' : 'eip191',
    nonce: 'abcdef0123456789',
    issuedAt: inSeconds(0),
    expirationTime: inSeconds(600),
    ...changed,
  };
}

/**
 * The text that clients of the extension sign: on EVM what EIP-4361 says, as viem writes it; on Solana the same
 * with one blank line.
 */
export function textOf(wallet: TestWallet, fields: Fields): string {
  const {
    domain,
    address,
    statement,
    uri,
    version,
    chainId,
    nonce,
    issuedAt,
    expirationTime,
    notBefore,
    requestId,
    resources,
  } = fields;
  if (wallet.namespace === 'eip155' && nonce !== undefined && issuedAt !== undefined) {
    return createSiweMessage({
      domain,
      address: address as `0x${string}`,
      uri,
      version,
      chainId: Number(chainId.split(':')[1]),
      nonce,
      issuedAt: new Date(issuedAt),
      ...(statement === undefined ? {} : { statement }),
      ...(expirationTime === undefined ? {} : { expirationTime: new Date(expirationTime) }),
      ...(notBefore === undefined ? {} : { notBefore: new Date(notBefore) }),
      ...(requestId === undefined ? {} : { requestId }),
      ...(resources === undefined ? {} : { resources: [...resources] }),
    });
  }
  const optional = (label: string, value: string | undefined) => (value === undefined ? [] : [`${label}: ${value}`]);
  const solana = wallet.namespace === 'solana';
  return [
    `${domain} wants you to sign in with your ${solana ? 'Solana' : 'Ethereum'} account:`,
    address,
    '',
    ...(statement === undefined ? (solana ? [] : ['']) : [statement, '']),
    `URI: ${uri}`,
    `Version: ${version}`,
    `Chain ID: ${chainId.split(':')[1]}`,
    ...optional('Nonce', nonce),
    ...optional('Issued At', issuedAt),
    ...optional('Expiration Time', expirationTime),
    ...optional('Not Before', notBefore),
    ...optional('Request ID', requestId),
    ...(resources === undefined ? [] : ['Resources:', ...resources.map((resource) => `- ${resource}`)]),
  ].join('\n');
}

/** A header of flat fields, signed by the wallet. */
export async function flatValue(wallet: TestWallet, changed: Partial<Fields> = {}): Promise<string> {
  const fields = fieldsOf(wallet, changed);
  return encodeEnvelope({ ...fields, signature: await wallet.sign(textOf(wallet, fields)) });
}

/** Flat fields that are not what was signed, not what they should be, or try to be more than one line. */
export async function hostileFields(wallet: TestWallet, other: TestWallet): Promise<readonly Value[]> {
  const fields = fieldsOf(wallet, {
    statement: 'I accept.',
    requestId: 'request-1',
    notBefore: inSeconds(-60),
    resources: [`https://${DOMAIN}/`],
  });
  const signature = await wallet.sign(textOf(wallet, fields));
  const sent = (name: string, changed: Readonly<Record<string, unknown>>): Value => [
    name,
    encodeEnvelope({ ...fields, signature, ...changed }),
  ];
  const signed = async (name: string, changed: Partial<Fields>): Promise<Value> => [
    name,
    await flatValue(wallet, changed),
  ];
  const smuggled = async (
    name: string,
    gone: Readonly<Record<string, undefined>>,
    inside: keyof Fields,
    [label, value]: readonly [string, string],
  ): Promise<Value> => {
    const odd = {
      ...fields,
      ...gone,
      [inside]: `${fields[inside]}\n${label}${label.endsWith('-') ? '' : ':'} ${value}`,
    } as Fields;
    return [name, encodeEnvelope({ ...odd, signature: await wallet.sign(plainText(wallet, odd)) })];
  };
  const solana = wallet.namespace === 'solana';
  const values: Value[] = [];

  const twoInOne = { ...fields, resources: [`https://${DOMAIN}/a\n- https://${DOMAIN}/b`] };
  values.push([
    'with a resource inside another',
    encodeEnvelope({ ...twoInOne, signature: await wallet.sign(plainText(wallet, twoInOne)) }),
  ]);
  for (const name of ['domain', 'address', 'uri', 'version', 'chainId', 'signature']) {
    values.push(sent(`without ${name}`, { [name]: undefined }));
    for (const odd of [null, 7, true, '', [], {}, [fields[name as keyof Fields]]])
      values.push(sent(`with the ${name} ${JSON.stringify(odd).slice(0, 20)}`, { [name]: odd }));
  }
  for (const name of ['statement', 'nonce', 'issuedAt', 'expirationTime', 'notBefore', 'requestId']) {
    values.push(sent(`signed with ${name}, sent without`, { [name]: undefined }));
    for (const odd of [7, true, [], {}]) values.push(sent(`with the ${name} ${JSON.stringify(odd)}`, { [name]: odd }));
  }
  for (const odd of [7, true, {}, 'https://tollgate.test/', [7], [null], [['https://tollgate.test/']], ['a\nb']])
    values.push(sent(`with the resources ${JSON.stringify(odd)}`, { resources: odd }));

  values.push(
    sent('signed for one domain, sent for another', { domain: 'evil.example' }),
    sent('signed by one wallet, sent as another', { address: other.address }),
    sent('signed for one URI, sent for another', { uri: `https://${DOMAIN}/other` }),
    sent('signed on one chain, sent on another', {
      chainId: solana ? 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1' : 'eip155:1',
    }),
    sent('signed on one chain, sent on one of the other kind', { chainId: other.chainId, type: undefined }),
    sent('signed with one nonce, sent with another', { nonce: '0123456789abcdef' }),
    sent('signed with one statement, sent with another', { statement: 'I do not accept.' }),
    sent('signed with one request id, sent with another', { requestId: 'request-2' }),
    sent('signed with one end, sent with a later one', { expirationTime: inSeconds(1200) }),
    sent('signed at one time, sent with a later one', { issuedAt: inSeconds(10) }),
    sent('signed with a resource, sent without', { resources: undefined }),
    sent('signed with a resource, sent with two', { resources: [`https://${DOMAIN}/`, `https://${DOMAIN}/b`] }),
    sent('of another version', { version: '2' }),
    sent('with the version as a number', { version: 1 }),
    sent('of the type of the other chain', { type: solana ? 'eip191' : 'ed25519' }),
    sent('of the scheme of the other chain', { signatureScheme: solana ? 'eip191' : 'siws' }),
    sent('of an unknown type', { type: 'none' }),
    sent('of an unknown scheme', { signatureScheme: 'sep10' }),
    sent('of a type that is no text', { type: ['eip191'] }),
    sent('with a bare chain', { chainId: wallet.chainId.split(':')[1] }),
    sent('with a chain without a reference', { chainId: `${wallet.namespace}:` }),
    sent('with a chain of another namespace', { chainId: `cosmos:${wallet.chainId.split(':')[1]}` }),
    sent('with a chain named like a prototype', { chainId: '__proto__:1' }),
    sent('with a chain named like a constructor', { chainId: 'constructor:1' }),
    sent('with a chain of three parts', { chainId: `${wallet.chainId}:1` }),
    sent('with another signature', { signature: 'x' }),
    sent('with a signature of another wallet', { signature: await other.sign(textOf(wallet, fields)) }),
    sent('with an empty message beside the fields', { message: '' }),
    sent('with null for a message beside the fields', { message: null }),
    sent('with another message beside the fields', { message: 'hello' }),
    sent('with a list for a message beside the fields', { message: [textOf(wallet, fields)] }),
    await smuggled('with the times inside the nonce', { issuedAt: undefined, expirationTime: undefined }, 'nonce', [
      'Issued At',
      fields.issuedAt!,
    ]),
    await smuggled('with the nonce inside the chain', { nonce: undefined }, 'chainId', ['Nonce', fields.nonce!]),
    await smuggled('with the resources inside the request id', { resources: undefined }, 'requestId', [
      'Resources:\n-',
      `https://${DOMAIN}/`,
    ]),
    await signed('for another domain', { domain: 'evil.example', uri: 'https://evil.example/' }),
    await signed('for another domain, with our URI', { domain: 'evil.example' }),
    await signed('with another URI', { uri: 'https://evil.example/' }),
    await signed('that has expired', { issuedAt: inSeconds(-900), expirationTime: inSeconds(-300) }),
    await signed('that is not valid yet', { notBefore: inSeconds(300) }),
    await signed('that is valid too long', { expirationTime: inSeconds(7200) }),
    await signed('from the future', { issuedAt: inSeconds(200) }),
  );

  // A field with a line feed would be lines of its own: the text that is rebuilt says what its owner did not mean.
  for (const name of ['domain', 'address', 'statement', 'uri', 'nonce', 'issuedAt', 'requestId'] as const) {
    for (const [what, feed] of [
      ['a line feed', '\n'],
      ['a carriage return', '\r'],
      ['a line separator', '\u2028'],
      ['NUL', '\0'],
    ] as const) {
      const smuggled = { ...fields, [name]: `${fields[name]}${feed}Role: admin` };
      values.push([
        `with ${what} in ${name}`,
        encodeEnvelope({ ...smuggled, signature: await wallet.sign(plainText(wallet, smuggled)) }),
      ]);
    }
  }
  return values;
}

/** The text as a careless server would rebuild it. */
const plainText = (wallet: TestWallet, fields: Fields) =>
  textOf({ ...wallet, namespace: 'solana' }, fields).replace(
    'your Solana',
    wallet.namespace === 'solana' ? 'your Solana' : 'your Ethereum',
  );
