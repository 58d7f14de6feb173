import { DOMAIN, messageLines, type TestWallet } from '../../support/wallets.ts';
import type { Message } from './messages.ts';

/** Messages for another domain, or with a URI that leads elsewhere. */
export const placeMessages = (wallet: TestWallet): Message[] => [...domains(wallet), ...uris(wallet)];

/** Hosts that are not the gateway's. Each is tried as domain, as host of the URI, and as both. */
const HOSTS: readonly (readonly [string, string])[] = [
  ['another host', 'evil.example'],
  ['a sub-domain', `api.${DOMAIN}`],
  ['the www of it', `www.${DOMAIN}`],
  ['a super-domain', 'test'],
  ['it as a sub-domain of another', `${DOMAIN}.evil.example`],
  ['it as the end of another name', `evil${DOMAIN}`],
  ['it after a hyphen', `evil-${DOMAIN}`],
  ['its beginning', DOMAIN.slice(0, -1)],
  ['more than it', `${DOMAIN}a`],
  ['a trailing dot', `${DOMAIN}.`],
  ['two trailing dots', `${DOMAIN}..`],
  ['a leading dot', `.${DOMAIN}`],
  ['a port', `${DOMAIN}:8443`],
  ['port 0', `${DOMAIN}:0`],
  ['the port of http', `${DOMAIN}:80`],
  ['a port that is too large', `${DOMAIN}:65979`],
  ['a colon without a port', `${DOMAIN}:x`],
  ['a port that is configured for another', `${DOMAIN}:9443`],
  ['a host that is configured with a port, without it', 'ports.test'],
  ['a host that is configured with a port, with another', 'ports.test:9444'],
  ['a host that is configured with a port, with a zero before', 'ports.test:09443'],
  ['a homoglyph', 'tollgаte.test'],
  ['a homoglyph in punycode', 'xn--tollgte-4fg.test'],
  ['full-width letters', 'ｔｏｌｌｇａｔｅ.test'],
  ['an ideographic full stop', 'tollgate。test'],
  ['a soft hyphen', 'toll\u00adgate.test'],
  ['a combining accent', 'tollga\u0301te.test'],
  ['a percent escape', 'tollgate%2etest'],
  ['a wildcard', '*.test'],
  ['an underscore', '_tollgate.test'],
  ['the loopback address', '127.0.0.1'],
  ['localhost', 'localhost'],
  ['the loopback address of IPv6', '[::1]'],
  ['null', 'null'],
  ['capitals', DOMAIN.toUpperCase()],
  ['one capital', `T${DOMAIN.slice(1)}`],
];

function domains(wallet: TestWallet): Message[] {
  const own = `https://${DOMAIN}/api/v1`;
  return [
    ...HOSTS.map(([name, domain]): Message => [`for ${name}`, messageLines(wallet, { domain, uri: own }).join('\n')]),
    ...HOSTS.slice(0, 12).map(([name, domain]): Message => [
      `for ${name}, with its URI`,
      messageLines(wallet, { domain }).join('\n'),
    ]),
    ['for a user at the domain', messageLines(wallet, { domain: `user@${DOMAIN}`, uri: own }).join('\n')],
    [
      'for another host as the user of the domain',
      messageLines(wallet, { domain: `evil.example@${DOMAIN}`, uri: own }).join('\n'),
    ],
    ['for a path of the domain', messageLines(wallet, { domain: `${DOMAIN}/evil`, uri: own }).join('\n')],
    ['for a question to the domain', messageLines(wallet, { domain: `${DOMAIN}?evil`, uri: own }).join('\n')],
    ['for a fragment of the domain', messageLines(wallet, { domain: `${DOMAIN}#evil`, uri: own }).join('\n')],
    [
      'for a backslash and another host',
      messageLines(wallet, { domain: `${DOMAIN}\\.evil.example`, uri: own }).join('\n'),
    ],
    [
      'for a domain of 4,000 characters',
      messageLines(wallet, { domain: `${'a.'.repeat(2000)}${DOMAIN}`, uri: own }).join('\n'),
    ],
  ];
}

function uris(wallet: TestWallet): Message[] {
  const uri = (name: string, value: string): Message => [
    `with ${name} as its URI`,
    messageLines(wallet, { uri: value }).join('\n'),
  ];
  return [
    ...HOSTS.map(([name, host]) => uri(name, `https://${host}/`)),
    uri('the domain as user of another host', `https://${DOMAIN}@evil.example/`),
    uri('the domain as password of another host', `https://a:${DOMAIN}@evil.example/`),
    uri('the domain and port as user of another host', `https://${DOMAIN}:443@evil.example/`),
    uri('another host as user of the domain', `https://evil.example@${DOMAIN}/`),
    uri('a user and a password', `https://user:password@${DOMAIN}/`),
    uri('an empty user', `https://@${DOMAIN}/`),
    uri('a backslash before an at', `https://${DOMAIN}\\@evil.example/`),
    uri('a backslash before the host', `https:\\\\${DOMAIN}/`),
    uri('one slash', `https:/${DOMAIN}/`),
    uri('three slashes', `https:///${DOMAIN}/`),
    uri('no slash', `https:${DOMAIN}/`),
    uri('no scheme', DOMAIN),
    uri('two slashes alone', `//${DOMAIN}/`),
    uri('a path alone', '/api/v1'),
    uri('javascript', `javascript:alert('${DOMAIN}')`),
    uri('data', `data:text/html,${DOMAIN}`),
    uri('a file', `file://${DOMAIN}/etc/passwd`),
    uri('ftp', `ftp://${DOMAIN}/`),
    uri('a mail address', `mailto:a@${DOMAIN}`),
    uri('a URN', `urn:tollgate:${DOMAIN}`),
    uri('an unknown scheme', `tollgate://${DOMAIN}/`),
    uri('a space in the path', `https://${DOMAIN}/a b`),
    uri('a space in the host', `https://toll gate.test/`),
    uri('a space before it', ` https://${DOMAIN}/`),
    uri('angle brackets', `<https://${DOMAIN}/>`),
    uri('quotation marks', `"https://${DOMAIN}/"`),
    uri('letters beyond ASCII in the path', `https://${DOMAIN}/größe`),
    uri('a port beyond the last', `https://${DOMAIN}:99999/`),
    uri('two URIs', `https://${DOMAIN}/ https://evil.example/`),
    uri('a host in brackets', `https://[${DOMAIN}]/`),
    uri('another host before a question mark', `https://evil.example?${DOMAIN}/`),
    uri('another host before a fragment', `https://evil.example#@${DOMAIN}/`),
  ];
}
