import { execFileSync, spawnSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createWallet, WalletError } from '../../../../src/providers/proxy/wallet/wallet.ts';
import { loadWallet, writeKeypairFile, isPrivate } from '../../../../src/providers/proxy/wallet/load-wallet.ts';
import { solanaWallet } from '../../../support/wallets.ts';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tollgate-keypair-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const MOUNTS = spawnSync('unshare', ['-rm', 'true']).status === 0;
const CHAIN = 'solana:mainnet';
const GOOD = JSON.stringify([...solanaWallet().secret]);
const load = (keypairFile: string) => loadWallet({ chainId: CHAIN, keypairFile });
const file = async (name: string, content: string | Buffer, mode = 0o600) => {
  const path = join(dir, name);
  await writeFile(path, content);
  await chmod(path, mode);
  return path;
};

describe('a keypair file', () => {
  it("is read when it is its owner's alone", async () => {
    for (const mode of [0o600, 0o400, 0o700])
      await expect(load(await file(`mode-${mode}`, GOOD, mode))).resolves.toMatchObject({ namespace: 'solana' });
  });

  it('is refused when others can read or write it, with the command that mends it', async () => {
    for (const mode of [0o640, 0o604, 0o660, 0o602, 0o644, 0o666, 0o610, 0o601, 0o444]) {
      const path = await file(`mode-${mode.toString(8)}`, GOOD, mode);
      await expect(load(path), mode.toString(8)).rejects.toThrow(
        new WalletError(
          `The keypair file ${path} can be read or written by other users, and everybody who can read the file can use the wallet. Run: chmod 600 ${path}`,
        ),
      );
    }
  });

  it("may be root's mount that a group can read and nobody write, for a process that is not root's", () => {
    const [root, user, other] = [0, 1000, 1001];
    const cases: [mode: number, owner: number, reader: number, accepted: boolean][] = [
      [0o100440, root, user, true],
      [0o100040, root, user, true],
      [0o100440, root, root, false],
      [0o100440, other, user, false],
      [0o100440, user, user, false],
      [0o100640, root, user, false],
      [0o100460, root, user, false],
      [0o100450, root, user, false],
      [0o100444, root, user, false],
      [0o100442, root, user, false],
      [0o100600, root, user, true],
      [0o100400, user, user, true],
    ];
    for (const [mode, uid, reader, accepted] of cases)
      expect(isPrivate({ mode, uid }, reader, false), `${mode.toString(8)} ${uid} ${reader}`).toBe(accepted);
  });

  it('on a read-only mount may be readable for others, and for nobody to write', async () => {
    for (const [mode, accepted] of [
      [0o100444, true],
      [0o100644, true],
      [0o100666, false],
      [0o100755, false],
    ] as const)
      expect(isPrivate({ mode, uid: 0 }, 0, true), mode.toString(8)).toBe(accepted);
    // A mount of a namespace of its own leaves nothing behind. Some containers allow none.
    if (!MOUNTS) return;
    const expected: Record<string, RegExp> = {
      '0440': /^ok$/,
      '0444': /^ok$/,
      '0644': /^ok$/,
      '0400': /^ok$/,
      '0666': /has mode 0666\. On a read-only mount .* Mount it with mode 0440 or 0400/,
      '0755': /has mode 0755\. On a read-only mount/,
    };
    const mount = join(dir, 'mount');
    await mkdir(mount);
    const modes = Object.keys(expected);
    const writes = modes.map((mode) => `echo '${GOOD}' > ${mount}/${mode} && chmod ${mode} ${mount}/${mode}`);
    const script = `mount -t tmpfs tmpfs ${mount} && ${writes.join(' && ')} && mount -o remount,ro ${mount} && exec ${process.execPath} -e "$READ"`;
    const read = `
      const { readKeypairFile } = await import(${JSON.stringify(new URL('../../../../src/providers/proxy/wallet/load-wallet.ts', import.meta.url).href)});
      for (const mode of ${JSON.stringify(modes)})
        console.log(await readKeypairFile(${JSON.stringify(mount)} + '/' + mode).then((text) => (text.trim() === ${JSON.stringify(GOOD)} ? 'ok' : text), (error) => error.message));`;
    const out = execFileSync('unshare', ['-rm', 'sh', '-c', script], {
      env: { ...process.env, READ: read },
      encoding: 'utf8',
    });
    const lines = out.trim().split('\n');
    for (const [index, mode] of modes.entries()) expect(lines[index], mode).toMatch(expected[mode]!);
    expect(lines).toHaveLength(modes.length);
  });

  it('is a regular file: no directory, no pipe, no device', async () => {
    await mkdir(join(dir, 'directory'));
    execFileSync('mkfifo', ['-m', '600', join(dir, 'pipe')]);
    for (const path of [join(dir, 'directory'), join(dir, 'pipe'), '/dev/zero'])
      await expect(load(path), path).rejects.toThrow('is not a regular file');
  });

  it('may be behind a link, as orchestrators mount it', async () => {
    await symlink(await file('target', GOOD), join(dir, 'link'));
    await expect(load(join(dir, 'link'))).resolves.toMatchObject({ namespace: 'solana' });
  });

  it('is at most 64 KiB', async () => {
    await expect(load(await file('padded', GOOD.padEnd(64 * 1024)))).resolves.toMatchObject({ namespace: 'solana' });
    await expect(load(await file('large', GOOD.padEnd(64 * 1024 + 1)))).rejects.toThrow('is larger than 65536 bytes');
  });

  it('that is not there is said to be missing, with how to make one', async () => {
    await expect(load(join(dir, 'none'))).rejects.toThrow(/does not exist\. Make one: tollgate keygen/);
    await expect(load(join(dir, 'none', 'none'))).rejects.toThrow(WalletError);
  });

  it('is written once, for its owner alone, and read back as the same wallet', async () => {
    for (const chain of ['solana', 'evm'] as const) {
      const path = join(dir, chain);
      const { wallet, fileText } = await createWallet(chain);
      await writeKeypairFile(path, fileText);
      expect((await stat(path)).mode & 0o777).toBe(0o600);
      const { address, accountId, providerId } = await loadWallet({ chainId: wallet.chainId, keypairFile: path });
      expect({ address, accountId, providerId }).toEqual({
        address: wallet.address,
        accountId: wallet.accountId,
        providerId: wallet.providerId,
      });
      await expect(writeKeypairFile(path, 'other')).rejects.toThrow(
        `${path} already exists and may hold a wallet, so nothing was written`,
      );
      expect(await readFile(path, 'utf8')).toBe(fileText);
    }
    await symlink(join(dir, 'dangling-target'), join(dir, 'dangling'));
    await expect(writeKeypairFile(join(dir, 'dangling'), 'x')).rejects.toThrow('already exists');
    expect(await readdir(dir)).not.toContain('dangling-target');
    await expect(writeKeypairFile(join(dir, 'no', 'such'), 'x')).rejects.toThrow(`mkdir -p ${join(dir, 'no')}`);
  });
});
