import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { CliError } from './cli-error.ts';

/** Refuses another user's data directory, because it would look empty. */
export function refuseUnreadable(dataDir: string): void {
  // The start says what is wrong with a file in the place of the directory.
  if (!statSync(dataDir, { throwIfNoEntry: false })?.isDirectory()) return;
  try {
    accessSync(dataDir, constants.R_OK | constants.X_OK);
  } catch (error) {
    throw new CliError(
      `The data directory ${dataDir} belongs to another user.\nRun this as the user that runs the gateway, or name another directory (--data).`,
      { cause: error },
    );
  }
}

/**
 * The warning of a gateway that root runs in the data directory of another user. null if no other user is concerned.
 * The gateway of that user could not read what root makes there.
 */
export function warningToRoot(dataDir: string): string | null {
  if (process.getuid?.() !== 0 || !existsSync(dataDir)) return null;
  const { uid } = statSync(dataDir);
  return uid === 0
    ? null
    : `Root runs this gateway, and the data directory belongs to user ${uid}. If user ${uid} runs the gateway otherwise, stop this one: that user may not read files that root makes`;
}
