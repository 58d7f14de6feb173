import type { Blobs, Tasks } from '#tasks';

/**
 * Checks that an account has room for `n` videos. Rejects with GatewayError if it has no room for the task or for
 * its files.
 */
export const roomForVideos =
  (tasks: Pick<Tasks, 'admit'>, blobs: Pick<Blobs, 'admit'>, account: string, n: number) => async (): Promise<void> => {
    await tasks.admit(account);
    await blobs.admit(account, n);
  };
