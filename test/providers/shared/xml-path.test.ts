import { describe, expect, it } from 'vitest'
import { findInXml, parseXmlPath } from '../../../src/providers/shared/xml-path.ts'

const ANSWER = `\uFEFF<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE files [<!ENTITY bomb "boom">]>
<!-- <files><file><url>https://no</url></file></files> -->
<files xmlns:x="urn:x" status='ok'>
  <file id="1"><name>a.png</name><url>https://a/?b=1&amp;c=2</url><empty/></file>
  <file id="2"><name/><url><![CDATA[https://b/<c>]]></url></file>
  <x:link rel="self" x:href="https://d&#47;e&#x2F;f"/>
  <note>one <b>two</b> three &bomb; &lt;</note>
  <br><after>unclosed</after>
</files>`

const find = (path: string, xml = ANSWER) => findInXml(xml, parseXmlPath(path))

describe('an XML path', () => {
  it.each([
    ['/files/file/url', 'https://a/?b=1&c=2'],
    ['files/file/url', 'https://a/?b=1&c=2'],
    ['/files/file[2]/url', 'https://b/<c>'],
    ['//file[2]/url', 'https://b/<c>'],
    ['/*/*/name', 'a.png'],
    ['/files/file[2]/url/text()', 'https://b/<c>'],
    ['//url', 'https://a/?b=1&c=2'],
    ['//b', 'two'],
    ['/*/file[1]/name', 'a.png'],
    ['/files/@status', 'ok'],
    ['/files/file[2]/@id', '2'],
    ['//link/@href', 'https://d/e/f'],
    ['/x:files/link/@x:href', 'https://d/e/f'],
    ['/files/note', 'one two three &bomb; <'],
    ['/files/note/b', 'two'],
    ['//after', 'unclosed'],
    ['/files/file[2]/name', ''],
    ['/files/file[3]/url', undefined],
    ['/files/none', undefined],
    ['/files/@none', undefined],
    ['/url', undefined],
  ])('%s', (path, expected) => {
    expect(find(path)).toBe(expected)
  })

  it('finds the first of the document, whatever is around it', () => {
    expect(find('//url', '<a><b><url>1</url></b><url>2</url></a>')).toBe('1')
    expect(find('//url[2]', '<a><url>1</url><b><url>2</url><url>3</url></b></a>')).toBe('3')
  })

  it.each(['&constructor;', '&toString;', '&__proto__;'])(
    '%s, which is no entity, stays as it is',
    entity => {
      expect(find('/a', `<a>${entity}</a>`)).toBe(entity)
      expect(find('/a/@b', `<a b="${entity}"/>`)).toBe(entity)
    },
  )

  it.each(['', '/', '//', 'a[b]', 'a[@b="c"]', '@a/b', 'a|b', 'a//b', '*[2]', 'count(a)'])(
    '%j is refused',
    path => {
      expect(() => parseXmlPath(path)).toThrow(/XML path/)
    },
  )

  it.each(['', 'text', '<', '<a', '</a>', '<!--', '<![CDATA['])('finds nothing in %j', xml => {
    expect(find('/a/b', xml)).toBeUndefined()
  })
})

/** Each of a size an answer can have; none may cost more than a moment. */
describe('a hostile answer in XML is read in a moment:', () => {
  const MOST = 256 * 1024
  const fill = (text: string) => text.repeat(Math.floor(MOST / text.length))
  it.each([
    ['comments without end', fill('<!--')],
    ['CDATA without end', fill('<![CDATA[')],
    ['instructions without end', fill('<?')],
    ['tags without end', fill('<a')],
    ['one long name', `<${fill('a')}`],
    ['one long tag', `<a ${fill(' b')}`],
    ['attributes without a value', `<a ${fill('b= ')}><b/></a>`],
    ['one long attribute', `<a ${fill('b')}></a>`],
    ['elements inside each other', fill('<a>')],
    ['files inside each other', `${'<file>'.repeat(100)}${fill('<file>')}`],
    ['ends that nothing began', `${fill('<a>')}${fill('</b>')}`],
    ['ampersands', `<a>${fill('&')}</a>`],
    ['numbers that are no characters', `<a>${fill('&#x110000;')}</a>`],
  ])('%s', (_, xml) => {
    const begun = process.cpuUsage()
    find('//x/y', xml)
    find('/a/@c', xml)
    find('//file/file[1]/file/*/url', xml)
    expect(process.cpuUsage(begun).user / 1000).toBeLessThan(2000)
  })
})
