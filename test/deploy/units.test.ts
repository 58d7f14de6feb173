import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { unpackedAt } from '../support/debian-packages.ts';
import { findProgram } from '../support/find-program.ts';

const FOLDER = resolve(import.meta.dirname, '../../deploy/systemd');

it.each(readdirSync(FOLDER))('systemd reads %s without a complaint', (name) => {
  const home = mkdtempSync(join(tmpdir(), 'tollgate-units-'));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const { file, env: ownEnv } = findProgram('systemd-analyze');
  // The units that a machine with systemd has, such as sysinit.target; the colon adds those of this machine.
  const SYSTEMD_UNIT_PATH = `${join(unpackedAt('systemd'), 'lib/systemd/system')}:`;
  const env = { ...ownEnv, SYSTEMD_UNIT_PATH, XDG_RUNTIME_DIR: home };
  // Where systemd does not run, its system's manager makes /run/systemd, which only root can.
  const manager = process.getuid?.() === 0 ? '--system' : '--user';
  // The programs of the unit are not on this machine.
  const program = join(home, 'program');
  writeFileSync(program, '#!/bin/sh\n');
  chmodSync(program, 0o755);
  const shipped = readFileSync(join(FOLDER, name), 'utf8');
  const verify = (text: string) => {
    const units = join(home, 'units');
    mkdirSync(units, { recursive: true });
    const unit = join(units, name);
    writeFileSync(unit, text.replaceAll(/^(Exec\w+)=\S+/gm, `$1=${program}`));
    const { status, stderr } = spawnSync(file, [manager, 'verify', '--man=no', unit], { env, encoding: 'utf8' });
    return { status, complaints: stderr.split('\n').filter((line) => line.includes(name)), stderr };
  };
  const { stderr, ...verdict } = verify(shipped);
  expect(verdict, stderr).toEqual({ status: 0, complaints: [] });
  expect(verify(shipped.replace('NoNewPrivileges', 'NoNewPrivilege')).complaints).toEqual([
    expect.stringContaining("'NoNewPrivilege' in section [Service], ignoring"),
  ]);
  // What stays wrong is not tried for ever.
  expect(shipped).toMatch(/^RestartPreventExitStatus=2\b/m);
});
