import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createOriginGuard } from '#security';
import type { OriginGuardOptions } from '../../../src/foundation/security/origins.ts';
import { anyCharacter } from '../../support/any-character.ts';

const DEFAULTS: OriginGuardOptions = {
  publicUrl: null,
  signInDomains: [],
  bindHost: '127.0.0.1',
  allowedOrigins: [],
  allowedHosts: [],
};
const guard = (options: Partial<OriginGuardOptions> = {}) => createOriginGuard({ ...DEFAULTS, ...options });

/** Gateways as operators set them up. */
const onLoopback = guard();
const behindProxy = guard({ publicUrl: 'https://gate.example', signInDomains: ['gate.example', 'pay.example:8402'] });
const onNetwork = guard({ bindHost: '0.0.0.0' });
const onNetworkNamed = guard({
  bindHost: '::',
  publicUrl: 'https://gate.example:8443',
  allowedHosts: ['gate.internal', '[fd00::1]', '10.0.0.7'],
  allowedOrigins: ['https://app.example', 'vscode-webview://panel'],
});
const onAddress = guard({ bindHost: '192.168.1.5', allowedHosts: ['gate.internal'] });

describe('without Origin, Host', () => {
  it.each([
    'localhost',
    'localhost:8402',
    'LOCALHOST:8402',
    'localhost.',
    'localhost.:8402',
    '127.0.0.1',
    '127.0.0.1:9',
    '127.1.2.3:8402',
    '[::1]',
    '[::1]:8402',
    '[0:0:0:0:0:0:0:1]:8402',
  ])('%j is of this machine, on every gateway', (host) => {
    for (const each of [onLoopback, behindProxy, onNetwork, onNetworkNamed, onAddress])
      expect(each({ host })).toBeNull();
  });

  it.each([
    '',
    'evil.example',
    'evil.example:8402',
    'localhost.evil.example',
    'localhost..',
    '.localhost',
    'evil.localhost',
    'notlocalhost',
    '127.0.0.1.evil.example',
    '127.0.0.1.nip.io',
    'localhost:8402@evil.example',
    'evil.example@localhost',
    'user:password@localhost',
    'localhost#.evil.example',
    'localhost/../evil.example',
    'localhost\\.evil.example',
    'localhost evil.example',
    'localhost,evil.example',
    'localhost, evil.example',
    'localhost:8402:8402',
    'localhost:',
    'localhost:port',
    'localhost:123456',
    'http://localhost',
    '%6cocalhost',
    'ｌｏｃａｌｈｏｓｔ',
    'localhoſt',
    '0.0.0.0:8402',
    '[::]:8402',
    '[::ffff:127.0.0.1]',
    '::1',
    '[::1',
    '[::1]evil.example',
    '[::1%25eth0]',
    '[fe80::1]',
    '192.168.1.5',
    'a'.repeat(300),
    `${'a.'.repeat(50_000)}localhost`,
  ])('%j is refused where the gateway knows its names', (host) => {
    expect(onLoopback({ host })).toContain('server.allowed_hosts');
    expect(behindProxy({ host })).toContain('server.allowed_hosts');
  });

  it('that is missing is refused there too', () => {
    expect(onLoopback({})).toContain('server.allowed_hosts');
    expect(onNetwork({})).toBeNull();
  });

  it.each([
    [
      behindProxy,
      ['gate.example', 'GATE.example.', 'gate.example:443', 'gate.example:8402', 'pay.example', 'pay.example:8402'],
    ],
    [onNetworkNamed, ['gate.example', 'gate.internal:8402', '[fd00:0::1]:8402', '10.0.0.7']],
    [onAddress, ['192.168.1.5', '192.168.1.5:8402', 'gate.internal']],
  ])('is a name that the operator gave, whatever its port', (each, hosts) => {
    for (const host of hosts) expect([host, each({ host })]).toEqual([host, null]);
    for (const host of ['evil.example', 'x.gate.example', 'gate.example.evil.example', 'gate.internal.evil'])
      expect(each({ host })).not.toBeNull();
  });

  it('is not the address that stands for all of a machine', () => {
    for (const bindHost of ['0.0.0.0', '::']) {
      const each = guard({ bindHost, publicUrl: 'https://gate.example' });
      for (const host of ['0.0.0.0:8402', '[::]:8402']) expect(each({ host })).not.toBeNull();
    }
  });

  it('is not judged on the network without names', () => {
    for (const host of ['evil.example', '10.0.0.9:8402', '', 'a b']) expect(onNetwork({ host })).toBeNull();
  });

  it('twice is refused, whatever it says', () => {
    const host = 'localhost:8402';
    expect(onLoopback({ host }, ['Host', host, 'accept', '*/*'])).toBeNull();
    for (const name of ['host', 'HOST'])
      expect(onLoopback({ host }, ['Host', host, name, host])).toContain('more than once');
    expect(onNetwork({ host }, ['Host', host, 'host', 'evil.example'])).toContain('more than once');
  });
});

describe('Origin', () => {
  const host = 'localhost:8402';

  it.each([
    'http://localhost',
    'http://localhost:6274',
    'https://localhost:8402',
    'http://127.0.0.1:3000',
    'http://[::1]:8402',
    'HTTP://LOCALHOST:1',
  ])('%s is let in by a gateway on loopback', (origin) => {
    expect(onLoopback({ host, origin })).toBeNull();
    expect(behindProxy({ host, origin })).toBeNull();
  });

  it.each([
    '',
    'null',
    'http://evil.example',
    'https://evil.example',
    'http://localhost.evil.example',
    'http://localhost@evil.example',
    'http://evil.example@localhost',
    'http://localhost:8402@evil.example',
    'http://localhost/',
    'http://localhost:8402/path',
    'http://localhost#evil',
    'http://localhost?evil',
    'http://localhost\\evil.example',
    'http://localhost http://evil.example',
    'http://localhost, http://evil.example',
    'http://evil.example, http://localhost',
    'http:localhost',
    '//localhost',
    'localhost',
    'localhost:8402',
    'file://',
    'file://localhost',
    'ftp://localhost',
    'ws://localhost:8402',
    'chrome-extension://abcdefgh',
    'vscode-webview://other',
    'http://0.0.0.0:8402',
    'http://%6cocalhost',
    'http://',
    `http://${'a'.repeat(100_000)}`,
  ])('%j is refused', (origin) => {
    for (const each of [onLoopback, behindProxy, onNetwork, onNetworkNamed, onAddress]) {
      const reason = each({ host, origin });
      expect(reason).toContain('server.allowed_origins');
      expect(reason!.length).toBeLessThan(250);
    }
  });

  it('of this machine is a stranger to a gateway on the network, but for its own pages', () => {
    expect(onNetwork({ host: '10.0.0.9:8402', origin: 'http://localhost:6274' })).not.toBeNull();
    expect(onNetwork({ host, origin: 'http://localhost:6274' })).not.toBeNull();
    expect(onNetwork({ host, origin: 'http://localhost:8402' })).toBeNull();
    expect(onNetwork({ host, origin: 'http://127.0.0.1:8402' })).not.toBeNull();
  });

  it('that is the same as Host says nothing where the name is a stranger’s', () => {
    expect(onNetwork({ host: 'evil.example:8402', origin: 'http://evil.example:8402' })).toContain('allowed_origins');
    expect(onLoopback({ host: 'evil.example:8402', origin: 'http://evil.example:8402' })).toContain('allowed_hosts');
    // Only the page's own request has Host right; the name that it was opened under stays.
    expect(onLoopback({ host, origin: 'http://evil.example:8402' })).toContain('allowed_origins');
  });

  it.each([
    ['https://gate.example', 'gate.example', null],
    ['https://gate.example', '127.0.0.1:8402', null],
    ['https://GATE.example:443', 'gate.example', null],
    ['https://pay.example:8402', '127.0.0.1:8402', null],
    ['https://gate.example:444', 'gate.example', 'allowed_origins'],
    ['https://gate.example:444', 'gate.example:444', null],
    ['http://gate.example', '127.0.0.1:8402', 'allowed_origins'],
    ['https://sub.gate.example', 'gate.example', 'allowed_origins'],
    ['https://gate.example.evil.example', 'gate.example', 'allowed_origins'],
  ])('%s with Host %s at a gateway behind a proxy: %s', (origin, at, reason) => {
    const result = behindProxy({ host: at, origin });
    if (reason === null) expect(result).toBeNull();
    else expect(result).toContain(reason);
  });

  it.each([
    'https://app.example',
    'vscode-webview://panel',
    'https://gate.example:8443',
    'http://gate.internal:8402',
    'http://[fd00::1]:8402',
  ])('%s is let in where the operator says so', (origin) => {
    const at = origin.startsWith('http://') ? origin.slice('http://'.length) : 'gate.example:8443';
    expect(onNetworkNamed({ host: at, origin })).toBeNull();
    expect(onLoopback({ host, origin })).not.toBeNull();
  });

  it('null is let in where the operator says so', () => {
    expect(guard({ allowedOrigins: ['null'] })({ host, origin: 'null' })).toBeNull();
  });

  it('twice is refused', () => {
    const origin = 'http://localhost:8402';
    expect(onLoopback({ host, origin: `${origin}, ${origin}` })).not.toBeNull();
    expect(onLoopback({ host, origin }, ['Origin', origin, 'ORIGIN', origin])).toContain('more than once');
  });

  it('does not make up for a wrong Host', () => {
    expect(onLoopback({ host: 'evil.example', origin: 'http://localhost:8402' })).toContain('allowed_hosts');
    expect(
      guard({ allowedOrigins: ['https://app.example'] })({ host: 'evil.example', origin: 'https://app.example' }),
    ).toContain('allowed_hosts');
  });
});

it.each(['127.0.0.1', '127.9.9.9', 'localhost', '::1', '0:0:0:0:0:0:0:1'])(
  'a gateway that listens on %s is on loopback',
  (bindHost) => {
    const each = guard({ bindHost });
    expect(each({ host: 'localhost', origin: 'http://localhost:3000' })).toBeNull();
    expect(each({ host: 'evil.example' })).not.toBeNull();
  },
);

it('survives anything, and lets in nothing but names of this machine', () => {
  const near = fc.constantFrom(
    'localhost',
    '127.0.0.1',
    '[::1]',
    'evil.example',
    ':',
    '@',
    '.',
    '/',
    '8402',
    'http://',
    ' ',
    '%',
    '#',
    '\\',
    ',',
    'null',
  );
  const text = fc.oneof(
    fc.string({ unit: anyCharacter }),
    fc.array(near, { maxLength: 6 }).map((parts) => parts.join('')),
  );
  fc.assert(
    fc.property(text, fc.option(text, { nil: undefined }), (host, origin) => {
      if (onLoopback({ host, ...(origin === undefined ? {} : { origin }) }) !== null) return;
      expect(host).toMatch(/^(?:localhost\.?|127\.[\d.]+|\[[\d:]+\])(?::\d{1,5})?$/i);
      if (origin !== undefined)
        expect(origin).toMatch(/^https?:\/\/(?:localhost\.?|127\.[\d.]+|\[[\d:]+\])(?::\d{1,5})?$/i);
    }),
    { numRuns: process.env['TOLLGATE_DEEP'] === '1' ? 50_000 : 1_000 },
  );
});
