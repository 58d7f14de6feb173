/** Facts about the gateway that the document contains. */
interface Boot {
  readonly version: string;
  /** The gateway's address for programs: `https://gateway.example`; `<this address>` if it is not known. */
  readonly base_url: string;
  readonly mode: 'development' | 'production';
  /** Whether `/api/v1/analytics/public` is public. */
  readonly analytics: boolean;
  /** Whether programs can sign in at the gateway by OAuth. */
  readonly authorization: boolean;
  /** The name on the button of the company's people. null if they cannot sign in. */
  readonly people: string | null;
  /** Paths whose pages are on another site. */
  readonly elsewhere: readonly string[];
  /** Host names that wallets may sign in to. The first one is used. */
  readonly sign_in_domains: readonly string[];
}

const boot = JSON.parse(document.getElementById('boot')?.textContent ?? '{}') as Partial<Boot> & {
  readonly answers?: Readonly<Record<string, unknown>>;
};

export const BOOT: Boot = {
  version: '',
  base_url: location.origin,
  mode: 'production',
  analytics: false,
  authorization: false,
  people: null,
  elsewhere: [],
  sign_in_domains: [],
  ...boot,
};

/** Answers of the API are reused for this time without a new request. */
export const FRESH_MS = 30_000;

/** The API answer that the document contains, while it is fresh. undefined if there is no such answer. */
export const answerOfDocument = (path: string): unknown =>
  performance.now() < FRESH_MS ? boot.answers?.[path] : undefined;
