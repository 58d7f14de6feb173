/** A video that this tab has queued. */
export interface QueuedVideo {
  readonly taskId: string;
  readonly callId: string | null;
  readonly prompt: string;
  /** Epoch milliseconds. */
  readonly at: number;
}

interface Kept {
  readonly account: string;
  readonly model: string;
  readonly videos: readonly QueuedVideo[];
}

const KEY = 'tollgate.playground.videos';
const KEPT_MAX = 12;
const PROMPT_MAX = 2_000;

/** The videos of a model that this tab has queued. After a reload the page continues to wait for them. */
export function readVideos(account: string, model: string): readonly QueuedVideo[] {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEY) ?? 'null') as Kept | null;
    return kept?.account === account && kept.model === model ? kept.videos : [];
  } catch {
    return [];
  }
}

export function keepVideos(kept: Kept): void {
  const videos = kept.videos
    .slice(0, KEPT_MAX)
    .map((video) => ({ ...video, prompt: video.prompt.slice(0, PROMPT_MAX) }));
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ ...kept, videos }));
  } catch {
    // If the storage is full, this tab only loses the list.
    sessionStorage.removeItem(KEY);
  }
}
