import type { Blobs, Tasks } from '#tasks';

/** Asks for room for `n` videos of an account. It rejects with GatewayError where its tasks or its files have none. */
export const roomForVideos =
  (tasks: Pick<Tasks, 'admit'>, blobs: Pick<Blobs, 'admit'>, account: string, n: number) => async (): Promise<void> => {
    await tasks.admit(account);
    await blobs.admit(account, n);
  };
