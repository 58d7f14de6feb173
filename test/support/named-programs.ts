import { accessSync, constants, mkdtempSync, symlinkSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';

/** The environment variable with the machine's own PATH. */
const MACHINE_PATH = 'TOLLGATE_TEST_MACHINE_PATH';
const CHECKOUT = resolve(import.meta.dirname, '../..');

/**
 * The programs of the machine that the everyday tests may start by name: those that the README names, and those that
 * every Debian and macOS has. All others (nginx, Chromium and so on) are found by the functions `find…` beside this
 * file, which bring what is missing. The list is also in CONTRIBUTING.md.
 */
const NAMED = [
  'git npm npx',
  'awk base64 basename bash cat chmod cp cut date dd dirname env expr find grep gzip head id kill ln ls mkdir mkfifo mktemp mv',
  'printf readlink rm rmdir sed seq sh sleep sort tail tar tee touch tr true uname wc xargs',
  // Disks that are full, read-only or cut off. The tests that need them look first whether they may use them.
  'losetup mkfs.ext4 mount perl umount unshare',
].flatMap((names) => names.split(' '));

/**
 * Makes PATH a folder of links to the programs that tests may start, so that no test depends on one that the machine
 * happens to have. It is made in `parent`. Programs of `node_modules/.bin` stay
 * available.
 */
export function allowNamedProgramsOnly(parent: string): void {
  process.env[MACHINE_PATH] = process.env['PATH'];
  const folder = mkdtempSync(join(parent, 'programs-'));
  symlinkSync(process.execPath, join(folder, 'node'));
  for (const name of NAMED) {
    const file = foldersOfMachine()
      .map((each) => join(each, name))
      .find(isExecutable);
    if (file !== undefined) symlinkSync(file, join(folder, name));
  }
  process.env['PATH'] = [join(CHECKOUT, 'node_modules/.bin'), folder].join(delimiter);
}

/** The folders of the machine's own PATH, for what looks for a program and brings it if it is missing. */
export function foldersOfMachine(): string[] {
  const path = process.env[MACHINE_PATH] ?? process.env['PATH'] ?? '';
  // Some users' PATH has no folder of servers and of tools for root.
  return [...path.split(delimiter).filter((folder) => folder !== ''), '/usr/sbin', '/sbin'];
}

/** The environment for programs that start others by name, such as apt-get. */
export const environmentOfMachine = (): NodeJS.ProcessEnv => ({
  ...process.env,
  PATH: process.env[MACHINE_PATH] ?? process.env['PATH'],
});

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
