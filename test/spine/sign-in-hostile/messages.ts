import { DOMAIN, inSeconds, messageLines, type MessageFields, type TestWallet } from '../../support/wallets.ts';
import { placeMessages } from './places.ts';
import { timeMessages } from './times.ts';

/** What is wrong with a message, and the message. Its signature is right: the wallet signed this very text. */
export type Message = readonly [name: string, text: string];

/** A message with every optional line, so that each can be tampered with. */
const WHOLE: MessageFields = {
  statement: 'I accept the terms.',
  nonce: 'abcdef0123456789',
  notBefore: inSeconds(-60),
  requestId: 'request-1',
  resources: ['https://tollgate.test/terms'],
};
const LABELS = [
  'URI',
  'Version',
  'Chain ID',
  'Nonce',
  'Issued At',
  'Expiration Time',
  'Not Before',
  'Request ID',
] as const;

/** Characters that are not to be seen, or look like something else. */
const INVISIBLE: readonly (readonly [string, string])[] = [
  ['a carriage return', '\r'],
  ['a tab', '\t'],
  ['NUL', '\0'],
  ['an escape', '\u001b'],
  ['DEL', '\u007f'],
  ['a C1 control', '\u0085'],
  ['a zero-width space', '\u200b'],
  ['a zero-width joiner', '\u200d'],
  ['a right-to-left override', '\u202e'],
  ['a bidi isolate', '\u2066'],
  ['a byte order mark', '\ufeff'],
  ['a line separator', '\u2028'],
];

export function hostileMessages(wallet: TestWallet): readonly Message[] {
  return [
    ...structure(wallet),
    ...characters(wallet),
    ...openings(wallet),
    ...placeMessages(wallet),
    ...timeMessages(wallet),
    ...values(wallet),
  ];
}

/** Lines missing, doubled, out of order, emptied, unknown. */
function structure(wallet: TestWallet): Message[] {
  const lines = messageLines(wallet, WHOLE);
  const at = (label: string) => lines.findIndex((line) => line.startsWith(`${label}:`));
  const without = (...gone: number[]) => lines.filter((_, index) => !gone.includes(index)).join('\n');
  const replaced = (index: number, ...by: string[]) => lines.toSpliced(index, 1, ...by).join('\n');
  const after = (index: number, ...more: string[]) => lines.toSpliced(index + 1, 0, ...more).join('\n');
  const [uri, chainId] = [at('URI'), at('Chain ID')];

  const messages: Message[] = [
    ['without its first line', without(0)],
    ['without its address', without(1)],
    ['without the line after the address', without(2)],
    ['without the line after the statement', without(4)],
    ['with a statement of two lines', after(3, 'And more.')],
    ['with a second line in place of the line after the statement', replaced(4, 'And more.')],
    ['with two statements', after(4, 'And another.', '')],
    ['with a statement right after the address', without(2, 4)],
    ['with two addresses', after(1, lines[1]!)],
    [
      'with another address after the first',
      after(1, wallet.namespace === 'solana' ? '11111111111111111111111111111111' : `0x${'11'.repeat(20)}`),
    ],
    ['with its first two lines swapped', [lines[1], lines[0], ...lines.slice(2)].join('\n')],
    ['with its first line twice', after(0, lines[0]!)],
    ['with an empty line before it', `\n${lines.join('\n')}`],
    ['with an empty line after it', `${lines.join('\n')}\n`],
    ['with a space after it', `${lines.join('\n')} `],
    ['with a second message after it', `${lines.join('\n')}\n${lines.join('\n')}`],
    ['with a second message before it', `${lines.join('\n')}\n\n${lines.join('\n')}`],
    ['of all lines twice', lines.flatMap((line) => [line, line]).join('\n')],
    ['with CRLF', lines.join('\r\n')],
    ['with CR alone', lines.join('\r')],
    ['of one line', lines.join(' ')],
    ['with literal \\n', lines.join('\\n')],
    ['that is empty', ''],
    ['of one space', ' '],
    ['of the first line alone', lines[0]!],
    ['that ends after the address', lines.slice(0, 2).join('\n')],
    ['that ends before its URI', lines.slice(0, uri).join('\n')],
    ['that ends after its URI', lines.slice(0, uri + 1).join('\n')],
    ['that ends after its chain', lines.slice(0, chainId + 1).join('\n')],
    ['with the fields in reverse', [...lines.slice(0, uri), ...lines.slice(uri, -2).toReversed()].join('\n')],
    ['with the fields before the address', [lines[0], ...lines.slice(uri), '', lines[1]].join('\n')],
    ['with a statement after the fields', [...lines.slice(0, 3), ...lines.slice(uri), '', lines[3]].join('\n')],
    [
      'with resources before the fields',
      [...lines.slice(0, uri), ...lines.slice(-2), ...lines.slice(uri, -2)].join('\n'),
    ],
    ['with resources twice', [...lines, ...lines.slice(-2)].join('\n')],
    ['with a resource without its heading', without(lines.length - 2)],
    ['with a resource without a hyphen', replaced(lines.length - 1, 'https://tollgate.test/terms')],
    ['with a resource without a space', replaced(lines.length - 1, '-https://tollgate.test/terms')],
    ['with a resource after a star', replaced(lines.length - 1, '* https://tollgate.test/terms')],
    ['with an empty resource', replaced(lines.length - 1, '- ')],
    ['with a field after the resources', [...lines, `Expiration Time: ${inSeconds(600)}`].join('\n')],
    ['with resources on their heading', replaced(lines.length - 2, 'Resources: https://tollgate.test/terms')],
  ];

  for (const label of ['URI', 'Version', 'Chain ID'] as const) messages.push([`without ${label}`, without(at(label))]);
  messages.push(['without any time', without(at('Issued At'), at('Expiration Time'))]);
  for (const [index, label] of LABELS.entries()) {
    const line = at(label);
    const value = lines[line]!.slice(label.length + 2);
    messages.push([`with ${label} twice`, after(line, lines[line]!)]);
    if (label !== 'Request ID')
      messages.push([
        `with ${label} again at the end`,
        [...lines.slice(0, -2), lines[line], ...lines.slice(-2)].join('\n'),
      ]);
    messages.push([`with an empty ${label}`, replaced(line, `${label}: `)]);
    messages.push([`with ${label} cut off at its colon`, replaced(line, `${label}:`)]);
    messages.push([`with ${label} without its colon`, replaced(line, `${label} ${value}`)]);
    messages.push([`with ${label} without its space`, replaced(line, `${label}:${value}`)]);
    messages.push([`with ${label} and two spaces`, replaced(line, `${label}:  ${value}`)]);
    messages.push([`with ${label} and a space after it`, replaced(line, `${label}: ${value} `)]);
    messages.push([`with ${label} indented`, replaced(line, ` ${label}: ${value}`)]);
    messages.push([`with ${label} in small letters`, replaced(line, `${label.toLowerCase()}: ${value}`)]);
    messages.push([`with an unknown line after ${label}`, after(line, 'Role: admin')]);
    messages.push([`with an empty line after ${label}`, after(line, '')]);
    const next = LABELS[index + 1];
    if (next)
      messages.push([
        `with ${next} before ${label}`,
        lines.with(line, lines[at(next)]!).with(at(next), lines[line]!).join('\n'),
      ]);
  }
  return messages;
}

/** Characters that no line may hold. */
function characters(wallet: TestWallet): Message[] {
  const lines = messageLines(wallet, WHOLE);
  const places: readonly (readonly [string, number])[] = [
    ['the first line', 0],
    ['the address', 1],
    ['the statement', 3],
    ['the URI', 5],
    ['the nonce', 8],
    ['the request id', 12],
    ['a resource', 14],
  ];
  return places.flatMap(([place, index]) =>
    INVISIBLE.map(([name, character]): Message => {
      const line = lines[index]!;
      const middle = Math.floor(line.length / 2);
      return [
        `with ${name} in ${place}`,
        lines.with(index, line.slice(0, middle) + character + line.slice(middle)).join('\n'),
      ];
    }),
  );
}

function openings(wallet: TestWallet): Message[] {
  const right = wallet.namespace === 'solana' ? 'Solana' : 'Ethereum';
  const other = wallet.namespace === 'solana' ? 'Ethereum' : 'Solana';
  const opening = (name: string, line: string): Message => [
    `that opens with ${name}`,
    messageLines(wallet, { opening: line }).join('\n'),
  ];
  return [
    opening('nothing', ''),
    opening('the domain alone', DOMAIN),
    opening('no domain', ` wants you to sign in with your ${right} account:`),
    opening('no domain and no space', `wants you to sign in with your ${right} account:`),
    opening(`the words of ${other}`, `${DOMAIN} wants you to sign in with your ${other} account:`),
    opening('the words of Bitcoin', `${DOMAIN} wants you to sign in with your Bitcoin account:`),
    opening('no kind of account', `${DOMAIN} wants you to sign in with your account:`),
    opening('a small letter', `${DOMAIN} wants you to sign in with your ${right.toLowerCase()} account:`),
    opening('capitals', `${DOMAIN} WANTS YOU TO SIGN IN WITH YOUR ${right.toUpperCase()} ACCOUNT:`),
    opening('no colon', `${DOMAIN} wants you to sign in with your ${right} account`),
    opening('a full stop', `${DOMAIN} wants you to sign in with your ${right} account.`),
    opening('a space after its colon', `${DOMAIN} wants you to sign in with your ${right} account: `),
    opening(
      'the address on the same line',
      `${DOMAIN} wants you to sign in with your ${right} account: ${wallet.address}`,
    ),
    opening('two spaces', `${DOMAIN}  wants you to sign in with your ${right} account:`),
    opening('a space first', ` ${DOMAIN} wants you to sign in with your ${right} account:`),
    opening('another verb', `${DOMAIN} wants you to log in with your ${right} account:`),
    opening(
      'its sentence twice',
      `${DOMAIN} wants you to sign in with your ${right} account: wants you to sign in with your ${right} account:`,
    ),
    opening('two domains', `${DOMAIN} evil.example wants you to sign in with your ${right} account:`),
    opening('another domain first', `evil.example ${DOMAIN} wants you to sign in with your ${right} account:`),
    opening('a list of domains', `${DOMAIN},evil.example wants you to sign in with your ${right} account:`),
  ];
}

/** Address, version, chain, nonce. */
function values(wallet: TestWallet): Message[] {
  const of = (name: string, fields: MessageFields): Message => [name, messageLines(wallet, fields).join('\n')];
  const solana = wallet.namespace === 'solana';
  const { address } = wallet;
  const addresses: readonly (readonly [string, string])[] = solana
    ? [
        ['an EVM address', '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'],
        ['its account id', wallet.accountId],
        ['one letter less', address.slice(1)],
        ['one letter more', `${address}1`],
        ['a leading 1', `1${address}`],
        ['a letter that base58 has not', `0${address.slice(1)}`],
        ['small letters', address.toLowerCase()],
        ['hex', Buffer.from(wallet.secret.subarray(32)).toString('hex')],
        ['base64', Buffer.from(wallet.secret.subarray(32)).toString('base64')],
        ['31 bytes', '1111111111111111111111111111111'],
        ['5,000 letters', 'z'.repeat(5000)],
        ['nothing', ''],
      ]
    : [
        ['a Solana address', '4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi'],
        ['its account id', wallet.accountId],
        ['one digit less', address.slice(0, -1)],
        ['one digit more', `${address}0`],
        ['no 0x', address.slice(2)],
        ['0X', address.replace('0x', '0X')],
        ['a letter that hex has not', `${address.slice(0, -1)}g`],
        [
          'a letter in the other case than its checksum has',
          address.replace(/[a-f]/i, (digit) =>
            digit === digit.toLowerCase() ? digit.toUpperCase() : digit.toLowerCase(),
          ),
        ],
        ['capitals', `0x${address.slice(2).toUpperCase()}`],
        ['the zero address', `0x${'0'.repeat(40)}`],
        ['the address of a precompiled contract', `0x${'0'.repeat(39)}1`],
        ['a public key', `0x04${'ab'.repeat(64)}`],
        ['a name', 'vitalik.eth'],
        ['nothing', ''],
      ];
  const chains = solana
    ? ['eip155:8453', '8453', '1', 'solana', 'solana:', 'solana:mainnet-beta', 'Mainnet', 'MAINNET', 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvd', 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpp',
       'SOLANA:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp', 'solana:0eykt4UsFv8P8NJdTREpY1vzqKqZKvdp', 'cosmos:cosmoshub-3', 'bip122:000000000019d6689c085ae165831e93', '__proto__', 'constructor', 'toString',
       wallet.accountId] // prettier-ignore
    : ['solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp', '5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp', 'mainnet', 'devnet', 'eip155', 'eip155:', 'eip155:x', 'eip155:-1', 'eip155:+1', 'eip155:1.0', 'eip155:0x2105',
       '0x2105', '1e3', '-1', 'EIP155:8453', 'eip155:8453:1', 'eip155: 8453', 'cosmos:cosmoshub-3', '١', '9'.repeat(400), wallet.accountId]; // prettier-ignore
  return [
    ...addresses.map(([name, value]) => of(`with ${name} for its address`, { address: value })),
    ...chains.map((chainId) =>
      of(`with the chain ${chainId.length > 60 ? 'of 400 digits' : JSON.stringify(chainId)}`, { chainId }),
    ),
    ...['0', '2', '01', '1.0', '1.', ' 1', 'v1', 'one', '１', '-1', '11'].map((version) =>
      of(`with version ${JSON.stringify(version)}`, { version }),
    ),
    ...['two words', 'semi;colon\u00e9', '\u00fcber-nonce-12345'].map((nonce) =>
      of(`with the nonce ${JSON.stringify(nonce)}`, { nonce }),
    ),
    of('with a statement of 8,000 letters', { statement: 'a'.repeat(8_000) }),
    of('with 400 resources', { resources: Array.from({ length: 400 }, () => `https://${DOMAIN}/`) }),
  ];
}
