import type { ComponentProps, ReactNode } from 'react';
import { Link as OwnLink } from 'wouter';
import { BOOT } from './boot.ts';

/** Whether the operator has this page on another site. The gateway redirects there. */
export const isElsewhere = (href: string): boolean =>
  BOOT.elsewhere.some((path) => `${href.split(/[?#]/, 1)[0]}/`.startsWith(`${path}/`));

/** A link to a page of the gateway, or to the operator's page that replaces it. */
export function Link({ href, children, ...rest }: ComponentProps<'a'> & { readonly href: string }): ReactNode {
  const To = isElsewhere(href) ? 'a' : OwnLink;
  return (
    <To href={href} {...rest}>
      {children}
    </To>
  );
}
