package template_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bahi/domain/fault"
	"bahi/domain/messaging/network"
	"bahi/domain/messaging/template"
	"bahi/internal/test/eventtest"
)

func ready(status string) network.Template {
	t := network.Template{ProviderID: "T1", Name: "order_ready", Language: "en", Category: "UTILITY", Status: status,
		Format: network.Positional, Extras: []string{"button_0"}}
	t.Read("Order {{ 1 }} is ready for {{2}}; call {{1}}")
	return t
}

func TestAListIsNotedWhereItDiffers(t *testing.T) {
	t.Parallel()
	listed := template.Listed{Template: ready("APPROVED"), Channel: 3}
	eventtest.Given(t, template.Kind).Case("a new template").When(template.List{Template: ready("APPROVED"), Channel: 3}).Then(listed)
	eventtest.Given(t, template.Kind).Case("nothing is known of it").When(template.MoveStatus{Status: "PAUSED"}).ThenNothing()
	given := eventtest.Given(t, template.Kind, listed)
	given.Case("the same").When(template.List{Template: ready("APPROVED"), Channel: 3}).ThenNothing()
	given.Case("another status alone").When(template.List{Template: ready("PAUSED"), Channel: 3}).Then(template.StatusMoved{Status: "PAUSED"})
	other := ready("APPROVED")
	other.Read("Another text")
	given.Case("another text").When(template.List{Template: other, Channel: 3}).Then(template.Listed{Template: other, Channel: 3})
	given.Case("the network tells of a status").When(template.MoveStatus{Status: "DISABLED"}).Then(template.StatusMoved{Status: "DISABLED"})
	given.Case("which it has").When(template.MoveStatus{Status: "APPROVED"}).ThenNothing()
	require.True(t, given.State().Sendable())
	require.False(t, given.And(template.StatusMoved{Status: "SOMETHING_NEW"}).State().Sendable())
}

func TestATemplateIsFilled(t *testing.T) {
	t.Parallel()
	s := template.State{Template: ready("APPROVED"), Channel: 3}
	require.Equal(t, []string{"1", "2", "button_0"}, s.Places())
	require.Equal(t, fault.Fields(
		fault.Field{Field: "templateParams.1", Message: "is too long"}, fault.Field{Field: "templateParams.2", Message: "must be filled"},
		fault.Field{Field: "templateParams.button_0", Message: "must be filled"},
		fault.Field{Field: "templateParams.3", Message: "the template has no such placeholder"},
		fault.Field{Field: "templateParams.header", Message: "the template has no such placeholder"}),
		s.Check("templateParams", template.Values{"1": strings.Repeat("a", 5000), "2": " ", "3": "x", "header": "y"}))
	given := template.Values{"1": "A-204", "2": "{{name}} ({{phone}})", "button_0": "A-204"}
	require.NoError(t, s.Check("templateParams", given))
	filled, text := s.Filled(given, "Asha {{phone}}", "919812345678")
	require.Equal(t, "Order A-204 is ready for Asha {{phone}} (919812345678); call A-204", text)
	require.Equal(t, []network.Value{{Name: "1", Text: "A-204"}, {Name: "2", Text: "Asha {{phone}} (919812345678)"}}, filled.Body)
	require.Equal(t, map[string]string{"button_0": "A-204"}, filled.Extras)
	_, text = s.Filled(given, "", "91")
	require.Contains(t, text, "for you (91)")
	filled, text = s.Filled(given, " Asha\n\tBen\u2028\u00a0 Shah ", "91")
	require.Equal(t, "Asha Ben Shah (91)", filled.Body[1].Text)
	require.Contains(t, text, "for Asha Ben Shah (91)")
	filled, text = s.Filled(template.Values{"1": "{{ name }}", "2": "{{\tphone}}"}, "{{2}} {{1}}", "91")
	require.Equal(t, []network.Value{{Name: "1", Text: "{{2}} {{1}}"}, {Name: "2", Text: "91"}}, filled.Body)
	require.Equal(t, "Order {{2}} {{1}} is ready for 91; call {{2}} {{1}}", text, "a name is no template")
}

func TestAValueCanBeSent(t *testing.T) {
	t.Parallel()
	s := template.State{Template: ready("APPROVED"), Channel: 3}
	s.Extras = append(s.Extras, "header_image")
	const image, filled = "expected an address like https://cdn.example.org/a.jpg", "must be filled"
	const braces = "may have {{name}} and {{phone}}, but no other braces"
	for _, c := range []struct{ place, value, message string }{
		{"2", "\u200b", filled}, {"2", "\u2800", filled}, {"2", "\u3164 \u00a0", filled}, {"2", "\u200e", filled},
		{"header_image", "\ufeff", filled},
		{"2", "{{first_name}}", braces}, {"2", "{{1}}", braces}, {"2", "{{ Name }}", braces}, {"2", "{{}}", braces},
		{"button_0", "{{name}} {{email}}", braces},
		{"header_image", "a.jpg", image}, {"header_image", "ftp://example.org/a.jpg", image}, {"header_image", "{{name}}", image},
		{"header_image", "https://user@example.org/a.jpg", image}, {"header_image", "https:///a.jpg", image},
	} {
		given := template.Values{"1": "A", "2": "{{ name }} 🙏", "button_0": "{{phone}}", "header_image": "https://example.org/a.jpg"}
		require.NoError(t, s.Check("p", given))
		given[c.place] = c.value
		require.Equal(t, fault.Fields(fault.Field{Field: "p." + c.place, Message: c.message}), s.Check("p", given), c)
	}
}

// A network refuses each of these values for every contact.
func TestAValueIsOneLine(t *testing.T) {
	t.Parallel()
	s := template.State{Template: ready("APPROVED"), Channel: 3}
	const message = "must have no line break, no tab and at most three blanks in a row"
	for _, value := range []string{"A\nB", "A\r\nB", "A\tB", "A\vB", "A\u2028B", "A\u0085B", "A    B", "A \u00a0 \u3000B", "A\n",
		"{{name}}\n", "રૂ\n૧૦"} {
		for _, place := range []string{"2", "button_0", "unused"} {
			given := template.Values{"1": "A-204", "2": "{{name}}", "button_0": "A-204"}
			given[place] = value
			require.Equal(t, fault.Fields(fault.Field{Field: "p." + place, Message: message}), s.Check("p", given), "%q at %s", value, place)
		}
	}
	require.NoError(t, s.Check("p", template.Values{"1": "A   B", "2": "₹ 1,250 / kg", "button_0": "क ख"}))
}
