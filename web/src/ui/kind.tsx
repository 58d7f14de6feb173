import { Bot, Clapperboard, Image, MessageSquareText, Wrench } from 'lucide-react';
import type { ReactNode } from 'react';
import { KIND_NAMES, type Kind } from './kinds.ts';

export { KIND_NAMES, KINDS, type Kind } from './kinds.ts';

const LOOK = {
  model: { Icon: MessageSquareText, tone: 'text-model' },
  tool: { Icon: Wrench, tone: 'text-tool' },
  agent: { Icon: Bot, tone: 'text-agent' },
  image: { Icon: Image, tone: 'text-image' },
  video: { Icon: Clapperboard, tone: 'text-video' },
} as const;

/** The kind of a service as a tile with an icon, before its name. Screen readers skip it. */
export function KindTile({ kind, size = 36 }: { readonly kind: Kind; readonly size?: number }): ReactNode {
  const { Icon, tone } = LOOK[kind];
  return (
    <span
      aria-hidden
      style={{ width: size, height: size }}
      className={`grid shrink-0 place-items-center rounded-lg border border-line bg-sunk ${tone}`}
    >
      <Icon size={size / 2} />
    </span>
  );
}

/** The kind of a service as a word. It has an icon, unless an icon is already beside it. */
export function KindMark({ kind, icon = true }: { readonly kind: Kind; readonly icon?: boolean }): ReactNode {
  const { Icon, tone } = LOOK[kind];
  return (
    <span className={`inline-flex items-center gap-1.5 align-middle text-sm font-medium whitespace-nowrap ${tone}`}>
      {icon && <Icon size={15} aria-hidden />}
      {KIND_NAMES[kind].one}
    </span>
  );
}
