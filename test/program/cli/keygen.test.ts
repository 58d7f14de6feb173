import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'smol-toml';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadWallet } from '../../../src/providers/proxy/wallet/load-wallet.ts';
import { ownName } from '../../../src/program/cli/command-line.ts';
import { LAUNCHER, makePlace, type Place } from './tollgate.ts';

let place: Place;
beforeEach(async () => {
  place = await makePlace();
});
afterEach(() => place.clear());

describe('tollgate keygen', () => {
  it.each([
    ['solana', /^\[(?:\d{1,3},){63}\d{1,3}\]\n$/, 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp'],
    ['evm', /^0x[0-9a-f]{64}\n$/, 'eip155:8453'],
  ])('writes a new %s wallet that only its owner can read, and says who it is', async (chain, content, chainId) => {
    const { code, output } = await place.run(['keygen', '--chain', chain, '--out', 'new key.json']);
    expect(code, output).toBe(0);
    const path = join(place.dir, 'new key.json');
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const text = await readFile(path, 'utf8');
    expect(text).toMatch(content);
    const wallet = await loadWallet({ chainId, keypairFile: path });
    expect(output).toContain(`address   ${wallet.address}\n`);
    expect(output).toContain(`account   ${wallet.accountId}\n`);
    expect(output).toContain(`provider  ${wallet.providerId}\n`);
    expect(output).toContain(`siwx --keypair 'new key.json' --chain-id ${chainId} --domain`);
    // What it prints shows no part of the key.
    for (let at = 0; at + 16 <= text.length; at += 1) expect(output).not.toContain(text.slice(at, at + 16));
  });

  it('makes another wallet each time', async () => {
    for (const name of ['a', 'b']) await place.run(['keygen', '--chain', 'evm', '--out', name]);
    expect(await readFile(join(place.dir, 'a'), 'utf8')).not.toBe(await readFile(join(place.dir, 'b'), 'utf8'));
  });

  it('prints a configuration that can be pasted', async () => {
    const { output } = await place.run(['keygen', '--chain', 'solana', '--out', 'a "key".json']);
    const { router } = parse(output.slice(output.indexOf('[router]'))) as {
      router: { siwx: { chain_id: string; keypair_file: string } };
    };
    const { chain_id: chainId, keypair_file: keypairFile } = router.siwx;
    expect(output).toContain((await loadWallet({ chainId, keypairFile })).address);
  });

  it('prints a call as it can be made from here, by nothing that could fetch another program', async () => {
    const { stdout } = await place.run(['keygen', '--chain', 'evm', '--out', 'a']);
    expect(stdout).toContain(`$(node ${LAUNCHER} siwx --keypair a `);
    expect(ownName('/somewhere/tollgate/bin/tollgate.mjs', '/somewhere/tollgate')).toBe('node bin/tollgate.mjs');
    expect(ownName('/some where/bin/tollgate.mjs', '/else')).toBe("node '/some where/bin/tollgate.mjs'");
    expect(ownName('/usr/local/bin/tollgate', '/else')).toBe('tollgate');
  });

  it('never overwrites a file', async () => {
    await writeFile(join(place.dir, 'kept'), 'precious');
    const { code, output } = await place.run(['keygen', '--chain', 'evm', '--out', 'kept']);
    expect(code).toBe(1);
    expect(output).toBe(
      'kept already exists and may hold a wallet, so nothing was written. Choose another name, or move the file away\n',
    );
    expect(await readFile(join(place.dir, 'kept'), 'utf8')).toBe('precious');
  });

  it('says what to do when it cannot write, or is not told what', async () => {
    await mkdir(join(place.dir, 'folder'));
    await writeFile(join(place.dir, 'folder', 'file'), '');
    const cases: [args: string[], code: number, says: string][] = [
      [['--chain', 'evm', '--out', 'none/key'], 1, 'mkdir -p none'],
      [['--chain', 'evm', '--out', 'folder'], 1, 'already exists'],
      [['--chain', 'evm', '--out', 'folder/file/key'], 1, 'folder/file/key cannot be written (ENOTDIR)'],
      [['--chain', 'evm'], 2, '--out'],
      [['--out', 'key'], 2, '--chain'],
      [['--chain', 'bitcoin', '--out', 'key'], 2, 'Allowed choices are solana, evm'],
      [['--help'], 0, 'tollgate keygen --chain solana --out provider.json'],
    ];
    for (const [args, code, says] of cases) {
      const result = await place.run(['keygen', ...args]);
      expect.soft(result, args.join(' ')).toMatchObject({ code, output: expect.stringContaining(says) });
      expect.soft(result.output, args.join(' ')).not.toContain('    at ');
    }
    await expect(stat(join(place.dir, 'key'))).rejects.toThrow('ENOENT');
  });
});
