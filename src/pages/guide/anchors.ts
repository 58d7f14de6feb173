import { plain } from './guide-pages.ts';

/**
 * Makes the anchors of one page's headings in the form that Git hosts use. A repeated heading gets `-1`, `-2` and so
 * on.
 */
export function createAnchors(): (heading: string) => string {
  const given = new Map<string, number>();
  return (heading) => {
    const name = plain(heading)
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-');
    const times = given.get(name) ?? 0;
    given.set(name, times + 1);
    return times === 0 ? name : `${name}-${times}`;
  };
}
