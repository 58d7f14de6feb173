import { opendirSync, openSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import type { ProbeReport, ProbeTask } from './find-wall.ts';

/*
 * A program that tries to do what a package may not, without Node's permission model, so that only the wall stops it.
 * It reads the task and
 * writes what it found out as JSON.
 */

const task = JSON.parse(readFileSync(0, 'utf8')) as ProbeTask;

const opens = (path: string): boolean => {
  for (const open of [opendirSync, (file: string) => openSync(file, 'r')])
    try {
      open(path);
      return true;
    } catch {
      // The next way.
    }
  return false;
};

const signals = (): boolean => {
  try {
    return process.kill(task.pid, 0);
  } catch {
    return false;
  }
};

/** Without a network there is no way even to this machine itself; with one, the port only refuses. */
const connects = (): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(task.port, '127.0.0.1');
    socket.on('connect', () => resolve(true));
    socket.on('error', () => resolve(false));
  });

/** RLIMIT_DATA counts it. */
const dataBytes = (): number | null => {
  try {
    const kib = /^VmData:\s*(\d+) kB/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
    return kib === undefined ? null : Number(kib) * 1024;
  } catch {
    return null;
  }
};

const report: ProbeReport = {
  unreadable: task.readable.filter((path) => !opens(path)),
  openings: task.hidden.filter(opens),
  signals: signals(),
  connects: await connects(),
  dataBytes: dataBytes(),
};
process.stdout.write(JSON.stringify(report), () => process.exit());
