package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (p *parser) column(name string) uint32 {
	for _, c := range p.table.columns {
		if c.name == name {
			return c.oid
		}
	}
	panic(fmt.Sprintf("unknown column %s of %q", name, p.st.sql))
}

// typed gives a parameter the type that it has here.
func (p *parser) typed(e expression, oid uint32) {
	if e.param > 0 && p.st.params[e.param-1] == 0 {
		p.st.params[e.param-1] = oid
	}
}

func (p *parser) expression() expression {
	left := p.conjunction()
	for p.take("or") {
		a, b := left, p.conjunction()
		left = expression{oid: oids["bool"], eval: func(x *execution, r, n row) any {
			return a.eval(x, r, n) == true || b.eval(x, r, n) == true
		}}
	}
	return left
}

func (p *parser) conjunction() expression {
	left := p.comparison()
	for p.take("and") {
		a, b := left, p.comparison()
		p.typed(b, oids["bool"])
		left = expression{oid: oids["bool"], eval: func(x *execution, r, n row) any {
			return a.eval(x, r, n) == true && b.eval(x, r, n) == true
		}}
	}
	return left
}

func (p *parser) comparison() expression {
	if p.take("not") {
		e := p.comparison()
		return expression{oid: oids["bool"], eval: func(x *execution, r, n row) any { return e.eval(x, r, n) == false }}
	}
	left := p.sum()
	if p.take("is", "distinct", "from") {
		right := p.sum()
		p.typed(right, left.oid)
		return expression{oid: oids["bool"], eval: func(x *execution, r, n row) any { return left.eval(x, r, n) != right.eval(x, r, n) }}
	}
	if p.take("is") {
		negated := p.take("not")
		p.need("null")
		return expression{oid: oids["bool"], eval: func(x *execution, r, n row) any { return (left.eval(x, r, n) == nil) != negated }}
	}
	if negated := p.take("not", "in"); negated || p.take("in") {
		p.need("(")
		var all []any
		for !p.take(")") {
			all = append(all, p.primary().eval(nil, nil, nil))
			p.take(",")
		}
		return expression{oid: oids["bool"], eval: func(x *execution, r, n row) any {
			return slices.Contains(all, left.eval(x, r, n)) != negated
		}}
	}
	if len(p.tokens) == 0 || !slices.Contains([]string{"=", "<>", "<", ">", "<=", ">="}, p.tokens[0]) {
		return left
	}
	how := p.pop()
	right := p.sum()
	p.typed(left, right.oid)
	p.typed(right, left.oid)
	return expression{oid: oids["bool"], eval: func(x *execution, r, n row) any {
		a, b := left.eval(x, r, n), right.eval(x, r, n)
		if a == nil || b == nil {
			return nil
		}
		c := compare(a, b)
		return how == "=" && c == 0 || how == "<>" && c != 0 || strings.HasPrefix(how, "<") && how != "<>" && c < 0 ||
			strings.HasPrefix(how, ">") && c > 0 || len(how) == 2 && how[1] == '=' && c == 0
	}}
}

func compare(a, b any) int {
	switch a := a.(type) {
	case int64:
		return int(a - b.(int64))
	case time.Time:
		return a.Compare(b.(time.Time))
	case time.Duration:
		return int(a - b.(time.Duration))
	default:
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	}
}

func (p *parser) sum() expression {
	left := p.primary()
	for {
		sign := int64(1)
		switch {
		case p.take("+"):
		case p.take("-"):
			sign = -1
		default:
			return left
		}
		a, b := left, p.primary()
		left = expression{oid: a.oid, eval: func(x *execution, r, n row) any {
			switch u := a.eval(x, r, n).(type) {
			case time.Time:
				switch v := b.eval(x, r, n).(type) {
				case time.Duration:
					return u.Add(time.Duration(sign) * v)
				case time.Time:
					return u.Sub(v)
				}
			case int64:
				return u + sign*b.eval(x, r, n).(int64)
			}
			return nil
		}}
		if a.oid == oids["timestamptz"] {
			p.typed(b, oids["interval"])
		} else {
			p.typed(b, a.oid)
		}
	}
}

// exists parses one of three subqueries: the parts of a build, and the projections of a program, which come as two arrays.
func (p *parser) exists() expression {
	text, depth := "", 0
	for {
		t := p.pop()
		text += " " + t
		switch t {
		case "(":
			depth++
		case ")":
			depth--
		}
		if depth == 0 {
			break
		}
	}
	if strings.Contains(text, "owner = $7") {
		p.st.params = append(p.st.params, make([]uint32, 7-len(p.st.params))...)
		p.st.params[6] = oids["uuid"]
		return expression{eval: func(x *execution, r, _ row) any {
			g, ok := x.s.get(fmt.Sprintf("projection.generation|%v|%v", r["name"], r["generation"]))
			return ok && g["owner"] == x.value(7)
		}}
	}
	p.st.params = []uint32{oids["text[]"], oids["int4[]"]}
	others := strings.Contains(text, "scratch")
	return expression{eval: func(x *execution, r, _ row) any {
		until, kept := r["keep_until"].(time.Time)
		for i, name := range arg[[]string](x, 1) {
			same := r["version"] == arg[[]int64](x, 2)[i]
			if r["name"] == name && (same || others && (r["status"] == "scratch" || kept && !until.After(x.s.w.db.now()))) {
				return true
			}
		}
		return false
	}}
}

func constant(v any, oid uint32) expression {
	return expression{eval: func(*execution, row, row) any { return v }, oid: oid}
}

func (p *parser) primary() (e expression) {
	t := p.pop()
	switch {
	case t == "exists":
		e = p.exists()
	case t == "(" && p.take("name", ",", "version", ")", "in"):
		e = p.exists()
	case t == "(":
		e = p.expression()
		p.need(")")
	case t == "true", t == "false":
		e = constant(t == "true", oids["bool"])
	case t == "null":
		e = constant(nil, 0)
	case t == "interval":
		p.pop()
		e = constant(time.Duration(0), oids["interval"]) // the only one is '0'
	case t[0] == '\'':
		e = constant(t[1:len(t)-1], oids["text"])
	case t[0] >= '0' && t[0] <= '9':
		e = constant(must(strconv.ParseInt(t, 10, 64)), oids["int8"])
	case t[0] == '$':
		nth := must(strconv.Atoi(t[1:]))
		for len(p.st.params) < nth {
			p.st.params = append(p.st.params, 0)
		}
		e = expression{eval: func(x *execution, _, _ row) any { return x.value(nth) }, param: nth}
	case (t == "now" || t == "clock_timestamp") && p.take("(", ")"):
		e = expression{oid: oids["timestamptz"], eval: func(x *execution, _, _ row) any { return x.s.w.db.now() }}
	case t == "case":
		p.need("when")
		when := p.expression()
		p.need("then")
		then := p.expression()
		p.need("else")
		other := p.expression()
		p.need("end")
		e = expression{oid: then.oid, eval: func(x *execution, r, n row) any {
			if when.eval(x, r, n) == true {
				return then.eval(x, r, n)
			}
			return other.eval(x, r, n)
		}}
	default:
		of, name, dotted := strings.Cut(t, ".")
		if !dotted {
			name = of
		}
		e = expression{oid: p.column(name), eval: func(_ *execution, r, n row) any {
			if of == "excluded" {
				return n[name]
			}
			return r[name]
		}}
	}
	for len(p.tokens) > 0 && strings.HasPrefix(p.tokens[0], "::") {
		e.oid = oids[p.pop()[2:]]
		p.typed(e, e.oid)
	}
	return e
}
