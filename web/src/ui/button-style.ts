export type Tone = 'plain' | 'primary' | 'danger' | 'quiet';

const TONES: Readonly<Record<Tone, string>> = {
  plain: 'border border-line bg-card text-ink hover:border-edge',
  primary: 'border border-transparent bg-accent text-on-accent hover:bg-accent-deep',
  danger: 'border border-bad bg-card text-bad hover:bg-bad-wash',
  quiet: 'border border-transparent text-soft hover:bg-sunk hover:text-ink',
};

/** The style of a button, also for links that look like buttons. */
export const buttonStyle = (tone: Tone = 'plain', size: 'normal' | 'small' = 'normal'): string =>
  `inline-flex items-center justify-center gap-2 rounded-md font-medium whitespace-nowrap transition-colors disabled:opacity-55 ${
    size === 'small' ? 'h-8 px-2.5 text-sm' : 'h-10 px-4 text-sm'
  } ${TONES[tone]}`;
